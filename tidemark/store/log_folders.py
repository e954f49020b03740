"""Where the CommitLog's files lie: in one folder, or in several as one address space (docs/format.md §1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SEPARATOR = ","  # of folders in a setting, as in a broker's storePathCommitLog


@dataclass(frozen=True)
class LogFolders:
    """The folders of one CommitLog.

    Writable ones stand in the order of their names, which decides where a file goes. In a read-only one no new file is
    made; the log's last file is filled up wherever it lies.
    """

    writable: tuple[Path, ...]
    read_only: tuple[Path, ...] = ()

    @classmethod
    def parse(cls, root: Path, paths: str, read_only_paths: str) -> LogFolders:
        """Of two settings, folders between commas; relative ones lie below *root*, none at all: its `commitlog`.

        raises ValueError when no folder is left to write to
        """
        read_only = _folders(root, read_only_paths)
        folders = _folders(root, paths) or (root / "commitlog",)
        writable = tuple(folder for folder in folders if folder not in read_only)
        if not writable:
            raise ValueError("every folder of the CommitLog is read-only")
        return cls(writable, read_only)

    @property
    def all(self) -> tuple[Path, ...]:
        """Every folder that may hold a file."""
        return self.writable + self.read_only

    def of_new_file(self, number: int, is_full: Callable[[Path], bool]) -> Path:
        """Where file *number* (start offset / size) is made: round the writable ones, those that are full left out."""
        folders = [folder for folder in self.writable if not is_full(folder)] or self.writable
        return folders[number % len(folders)]


def _folders(root: Path, paths: str) -> tuple[Path, ...]:
    return tuple(sorted({root / path.strip() for path in paths.split(SEPARATOR) if path.strip()}))
