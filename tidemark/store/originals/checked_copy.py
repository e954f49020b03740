"""A second, checksummed copy of each small original, so that damage of one file loses nothing.

An original cannot be derived from the log: topics, tombstones, terms, the format's version, offsets of groups and of
delay levels. RocketMQ's files in `config/` must stay its JSON, which has no room for a checksum, so the copy is our own
file: `tidemark/<owner>/<name>.copy`. It is written before the file itself, so it is never older.

    TIDEMARK-COPY 1 <CRC-32 of the content> <CRC-32 of the file that it replaces> <bytes of the content>\\n <content>

CRCs have 8 hexadecimal digits. The CRC of the replaced file distinguishes a crash between the writes of the copy and of
the file from a file that an operator has put back.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from isal.isal_zlib import crc32

from tidemark.errors import CorruptStoreError
from tidemark.store.storage import Storage, replace_file

_HEAD = b"TIDEMARK-COPY 1 "
_OWNERS = {"topics.json": "writer", "delayOffset.json": "writer", "consumerOffset.json": "query"}  # of files in config/
_OWN_NAMES = frozenset(
    {
        "format",
        "terms",
        "tombstones.json",
        "queue_offsets",
        "identity",
        "promised",
        "epochs",
        "group.json",
    }  # the last four: of replication
)

Version = tuple[int, ...]


class FileRules(NamedTuple):
    """Rules for one type of file.

    parse    returns the content; raises ValueError, KeyError, TypeError or AttributeError for invalid bytes
    version  returns the content's version, which grows with each write; None: the content has none
    shared   True if brokers and operators may write the file, too
    """

    parse: Callable[[bytes], Any]
    version: Callable[[Any], Version | None]
    shared: bool = False


class CopyFault(enum.StrEnum):
    """Reason why the copy is used instead of the file."""

    MISSING = "MISSING"
    DAMAGED = "DAMAGED"
    OLDER = "OLDER"  # a crash between the writes of the copy and of the file


class ValidContent(NamedTuple):
    """The valid content. data: None if neither file nor copy exists.

    fault           why the copy is used instead of the file; None if the file is used
    is_foreign      True if another program wrote the file after the copy
    is_copy_sound   False if the copy is missing or damaged
    has_copy        False if the copy is missing
    """

    data: bytes | None
    fault: CopyFault | None = None
    is_foreign: bool = False
    is_copy_sound: bool = True
    has_copy: bool = True


def copy_path(path: Path) -> Path | None:
    """Return the path of the checked copy of *path*; None for a file without one."""
    if path.parent.name == "config" and path.name in _OWNERS:
        return path.parent.parent / "tidemark" / _OWNERS[path.name] / f"{path.name}.copy"
    if path.name in _OWN_NAMES:
        return path.with_name(f"{path.name}.copy")
    return None


class Kept(NamedTuple):
    """A sound copy. replaced: CRC-32 of the file's previous content."""

    content: bytes
    replaced: int


def encode_copy(content: bytes, replaces: bytes = b"") -> bytes:
    """Encode a copy of *content*, which replaces the content *replaces*."""
    body = b"%08x %d\n" % (crc32(replaces), len(content)) + content
    return _HEAD + b"%08x " % crc32(body) + body


def decode_copy(data: bytes) -> Kept | None:
    """Decode a copy; None if it is damaged."""
    body = data[len(_HEAD) + 9 :]
    if data != _HEAD + b"%08x " % crc32(body) + body:
        return None
    head, _, content = body.partition(b"\n")
    return Kept(content, int(head[:8], 16)) if head[9:] == b"%d" % len(content) else None


def read_file(path: Path) -> bytes | None:
    """Return the file's bytes; None if the file or its folder does not exist."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def read_checked(path: Path, form: FileRules) -> ValidContent:
    """Return the content of *path* or of its copy, whichever is the newest sound one.

    Raises CorruptStoreError (fact: path) if both are damaged: no content is guessed.
    """
    copy = copy_path(path)
    stored = None if copy is None else read_file(copy)
    main = read_file(path)
    kept = None if stored is None else decode_copy(stored)
    if kept is not None:
        return _choose(main, kept, form)
    if stored is not None and not is_sound(main, form):
        raise CorruptStoreError(
            f"{path} and its copy {copy} are both damaged: run `tidemark store repair`, which shows the state of both",
            path=str(path),
        )
    return ValidContent(main, is_copy_sound=False, has_copy=stored is not None)


def is_sound(data: bytes | None, form: FileRules) -> bool:
    """Return True if *data* is a valid file of this form."""
    if data is None or not data.strip():
        return False
    try:
        form.version(form.parse(data))
    except (ValueError, KeyError, TypeError, AttributeError):
        return False
    return True


def _choose(main: bytes | None, copy: Kept, form: FileRules) -> ValidContent:
    """Choose between the file's bytes and those of its sound copy."""
    kept = copy.content
    if main == kept:
        return ValidContent(main)
    if main is None:
        return ValidContent(kept, CopyFault.MISSING)
    if main and crc32(main) == copy.replaced:
        return ValidContent(kept, CopyFault.OLDER)
    if not is_sound(main, form) or _differ_by_one_bit(main, kept):
        return ValidContent(kept, CopyFault.DAMAGED)
    of_main, of_kept = form.version(form.parse(main)), form.version(form.parse(kept))
    if form.shared or of_main is None or of_kept is None or of_main > of_kept:
        return ValidContent(main, is_foreign=True)
    return ValidContent(kept, CopyFault.DAMAGED)


def _differ_by_one_bit(one: bytes, other: bytes) -> bool:
    """Return True if exactly one bit differs, which indicates a flipped bit: no program makes such a change."""
    if len(one) != len(other):
        return False
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).bit_count() == 1


def write_checked(path: Path, data: bytes, storage: Storage, *, keep_previous: bool = True) -> None:
    """Write *path* and its copy. After any crash at least one is whole, and a full disk changes neither."""
    copy = copy_path(path)
    first: dict[Path, bytes] = {}
    if copy is not None:
        storage.make_folder(copy.parent)
        first[copy] = encode_copy(data, replaces=read_file(path) or b"")
    storage.make_folder(path.parent)
    replace_file(storage, path, data, keep_previous=keep_previous, first=first)


def heal(path: Path, form: FileRules, storage: Storage) -> ValidContent:
    """Make file and copy equal again and return the previous state. Only the file's owner calls this.

    The bytes of a damaged file stay in the copy's folder as `<name>.damaged`.
    Raises CorruptStoreError if both are damaged.
    """
    copy = copy_path(path)
    choice = read_checked(path, form)
    assert copy is not None, "only originals are healed"
    if choice.data is None or not is_sound(choice.data, form):
        return choice  # no content, or the caller decides about older content
    if choice.fault is CopyFault.DAMAGED:
        storage.make_folder(copy.parent)
        replace_file(storage, copy.with_name(f"{path.name}.damaged"), path.read_bytes(), keep_previous=False)
    if choice.fault is not None or choice.is_foreign or not choice.is_copy_sound:
        write_checked(path, choice.data, storage, keep_previous=False)
    return choice
