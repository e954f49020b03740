"""`tidemark/format`: the version of Tidemark's files in a store (docs/format.md §11). The writer owns it.

RocketMQ's own files have no version. This one covers the files below `tidemark/` and the assumptions about the others.
A newer minor version only adds data that an older program may ignore; a newer major version does not guarantee that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from tidemark.errors import CorruptStoreError, StoreTooNewError
from tidemark.store.originals.checked_copy import FileRules, read_checked, write_checked
from tidemark.store.paths import StorePaths
from tidemark.store.storage import Storage, replace_file
from tidemark.version import program_version


class FormatVersion(NamedTuple):
    """A version of the files."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


FORMAT = FormatVersion(1, 0)  # what this program reads and writes

_UNFINISHED = {"restoring": True}


def read_format(paths: StorePaths) -> FormatVersion | None:
    """Return the store's version; None for a broker's store, or one of a Tidemark without versions.

    Raises CorruptStoreError if the file exists but is unreadable, or marks an unfinished restore.
    """
    path = paths.format_file
    data = read_checked(path, FORMAT_FORM).data
    if data is None:
        return None
    try:
        content = orjson.loads(data)
        if content == _UNFINISHED:
            raise CorruptStoreError(
                f"{paths.root} was not restored completely: empty the folder and restore again", path=str(path)
            )
        return _decode(content)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptStoreError(f"{path} does not contain a version", path=str(path)) from error


def _decode(content: dict[str, Any]) -> FormatVersion:
    return FormatVersion(int(content["version"]["major"]), int(content["version"]["minor"]))


FORMAT_FORM = FileRules(lambda data: _decode(orjson.loads(data)), tuple)


def require_known_format(paths: StorePaths) -> FormatVersion | None:
    """Return `read_format`. StoreTooNewError: a newer program wrote files that this one would misread."""
    version = read_format(paths)
    if version is not None and version.major > FORMAT.major:
        raise StoreTooNewError(
            f"{paths.root} has format {version}, but this program supports formats up to {FORMAT.major}.x: "
            "use the Tidemark that wrote it, or a newer one",
            path=str(paths.format_file),
            format=str(version),
            known=str(FORMAT),
        )
    return version


def write_format(paths: StorePaths, storage: Storage) -> None:
    """Write this program's version, durably, unless the store has the same or a newer one."""
    version = require_known_format(paths)
    if version is None or version < FORMAT:
        content = {"version": FORMAT._asdict(), "written_by": f"tidemark {program_version()}"}
        write_checked(
            paths.format_file, orjson.dumps(content, option=orjson.OPT_INDENT_2), storage, keep_previous=False
        )


def say_unfinished(paths: StorePaths, storage: Storage) -> None:
    """Mark the store as being restored, durably, so that no program opens it."""
    replace_file(storage, paths.format_file, orjson.dumps(_UNFINISHED), keep_previous=False)
