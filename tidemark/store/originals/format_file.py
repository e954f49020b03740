"""`tidemark/format`: which version of Tidemark's files a store has (docs/format.md §11). The writer owns it.

RocketMQ's own files have no version: this one covers what lies below `tidemark/`, and what may be assumed about the
rest. A newer minor version has only added what an older program may overlook; a newer major one has not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from tidemark.errors import CorruptStoreError, StoreTooNewError
from tidemark.store.originals.checked_copy import Form, read_checked, write_checked
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
    """What the store says; None for a directory of a broker's, or of a Tidemark that did not say yet.

    raises CorruptStoreError when the file is there and cannot be read, or says that a restore was not finished
    """
    path = paths.format_file
    data = read_checked(path, FORMAT_FORM).data
    if data is None:
        return None
    try:
        content = orjson.loads(data)
        if content == _UNFINISHED:
            raise CorruptStoreError(
                f"{paths.root} was not restored to its end: empty it, and restore again", path=str(path)
            )
        return _decode(content)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptStoreError(f"{path} does not tell a version", path=str(path)) from error


def _decode(content: dict[str, Any]) -> FormatVersion:
    return FormatVersion(int(content["version"]["major"]), int(content["version"]["minor"]))


FORMAT_FORM = Form(lambda data: _decode(orjson.loads(data)), tuple)


def require_known_format(paths: StorePaths) -> FormatVersion | None:
    """As `read_format`; StoreTooNewError when a newer program has made files that this one would misread."""
    version = read_format(paths)
    if version is not None and version.major > FORMAT.major:
        raise StoreTooNewError(
            f"{paths.root} has format {version}, and this program knows formats up to {FORMAT.major}.x: "
            "use the Tidemark that wrote it, or a newer one",
            path=str(paths.format_file),
            format=str(version),
            known=str(FORMAT),
        )
    return version


def write_format(paths: StorePaths, storage: Storage) -> None:
    """Say this program's version, durably, unless the store says the same or a newer one."""
    version = require_known_format(paths)
    if version is None or version < FORMAT:
        content = {"version": FORMAT._asdict(), "written_by": f"tidemark {program_version()}"}
        write_checked(
            paths.format_file, orjson.dumps(content, option=orjson.OPT_INDENT_2), storage, keep_previous=False
        )


def say_unfinished(paths: StorePaths, storage: Storage) -> None:
    """Let nobody open what is being restored; durable when this returns."""
    replace_file(storage, paths.format_file, orjson.dumps(_UNFINISHED), keep_previous=False)
