"""TokenFile: a file with a token that another program renews."""

from __future__ import annotations

from pathlib import Path

from tidemark.errors import TokenFileError
from tidemark.settings.reloaded_files import Stamp, stamps_of


class TokenFile:
    """Token in the file at *path*, stripped of whitespace; read again when the file changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamps: tuple[Stamp, ...] = ()
        self._token = ""

    def read(self) -> str:
        """Return the token. Raises TokenFileError if the file cannot be read or contains no token."""
        stamps = stamps_of((self._path,))
        if stamps != self._stamps:
            try:
                self._token = self._path.read_text("ascii").strip()
            except OSError as error:
                raise TokenFileError(f"{self._path}: {error.strerror}", path=str(self._path)) from None
            except UnicodeDecodeError:
                self._token = ""
            self._stamps = stamps
        if not self._token or any(character.isspace() for character in self._token):
            raise TokenFileError(f"{self._path} contains no token: expected one ASCII word", path=str(self._path))
        return self._token
