"""Moment: the end of the log that a backup takes, and small files that are consistent with it.

The reading order makes them consistent while services write:

1. the table of next queue offsets and the consumers' offsets, which are then older than the end;
2. the end: everything below it is committed, and committed bytes do not change;
3. topics.json, which then has the topic of every record below the end, and after it the tombstones: a topic that is
   missing in topics.json is in the tombstones. A tombstone above the end is of a later deletion: it counts from the
   end.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from tidemark.errors import StoreClosedError
from tidemark.index.check.scope import whole_store
from tidemark.index.end_of_log import find_end_of_log
from tidemark.index.queue_ends import queue_ends
from tidemark.replication.member_files import EPOCHS, EPOCHS_FORM
from tidemark.store.checkpoint import Checkpoint
from tidemark.store.lock import lock_holder
from tidemark.store.mapped_file_queue import MappedFileQueue, size_on_disk
from tidemark.store.originals.checked_copy import read_checked
from tidemark.store.originals.format_file import FORMAT_FORM
from tidemark.store.originals.next_offsets import NextOffsets, encode_next_offsets, load_next_offsets
from tidemark.store.originals.terms import TERMS_FORM, current_term
from tidemark.store.originals.tombstones import encode_tombstones, load_tombstones
from tidemark.store.originals.topics import CONFIG_FORM, is_config
from tidemark.store.paths import StorePaths

_COMMIT_TIMEOUT_S = 10.0
_POLL_S = 0.01


class Moment(NamedTuple):
    """State of the store that a backup takes. small_files: contents by path relative to the store's root."""

    start: int
    end: int
    log_file_size: int
    term: int
    small_files: dict[str, bytes]


def look_at(paths: StorePaths) -> Moment:
    """Return a moment of the store at *paths*, which may be running.

    Raises StoreClosedError if the store has no log or must be recovered first.
    """
    size = size_on_disk(paths.commit_log)
    if size is None:
        raise StoreClosedError(f"{paths.root} has no log: nothing was written yet", path=str(paths.commit_log))
    small = {name: data for name, data in _config_files(paths).items() if name != _name(paths, paths.topics)}
    numbers = load_next_offsets(paths.next_offsets)
    log = MappedFileQueue(paths.commit_log, size)
    try:
        end = _end(paths, log, at_least=0 if numbers is None else numbers.position)
        if numbers is None:  # a broker's store: after records expire, only its queues have the next offsets
            numbers = NextOffsets(log.min_offset, 0, dict(queue_ends(paths, below=end)))
        small[_name(paths, paths.next_offsets)] = encode_next_offsets(numbers)
        config = _config_files(paths)
        if _name(paths, paths.topics) in config:
            small[_name(paths, paths.topics)] = config[_name(paths, paths.topics)]
        small.update(_own_files(paths, end))
        return Moment(log.min_offset, end, size, current_term(paths.terms).number, small)
    finally:
        log.close()


def _name(paths: StorePaths, path: Path) -> str:
    return str(path.relative_to(paths.root))


def _config_files(paths: StorePaths) -> dict[str, bytes]:
    """Return the files of config/. A damaged one is replaced by its checked copy or its `.bak`."""
    files: dict[str, bytes] = {}
    folder = paths.topics.parent
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.suffix in (".bak", ".tmp") or not path.is_file():
            continue
        backup = path.with_name(path.name + ".bak")
        whole = backup if path.suffix == ".json" and not is_config(path) and is_config(backup) else path
        choice = read_checked(path, CONFIG_FORM)
        sound = choice.data if choice.has_copy else None
        files[_name(paths, path)] = whole.read_bytes() if sound is None else sound
    return files


def _own_files(paths: StorePaths, end: int) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    stones = load_tombstones(paths.tombstones)
    if stones:
        clamped = [stone._replace(physical_offset=min(stone.physical_offset, end)) for stone in stones]
        files[_name(paths, paths.tombstones)] = encode_tombstones(clamped)
    epochs = paths.replication / EPOCHS  # with them a restored store can follow the group, as a new member
    for path, form in ((paths.terms, TERMS_FORM), (paths.format_file, FORMAT_FORM), (epochs, EPOCHS_FORM)):
        data = read_checked(path, form).data
        if data is not None:
            files[_name(paths, path)] = data
    return files


def _end(paths: StorePaths, log: MappedFileQueue, *, at_least: int) -> int:
    """Return the physical offset up to which the log can be copied, a record boundary."""
    term = current_term(paths.terms)
    was_closed = (paths.writer / "clean").exists()  # by our writer; a broker may have written since
    if term.number == 0 or was_closed:
        return find_end_of_log(paths, log, whole_store(paths).floor)
    if not term.is_of_this_boot():
        raise StoreClosedError(
            "the machine was restarted after the writer stopped: start the writer once to recover the log",
            path=str(paths.root),
        )
    checkpoint = Checkpoint.open_read_only(paths.checkpoint)
    try:
        deadline = time.monotonic() + _COMMIT_TIMEOUT_S
        while checkpoint.committed_offset < at_least and lock_holder(paths.lock) is not None:
            if time.monotonic() > deadline:
                raise StoreClosedError(
                    f"the writer did not commit its appends within {_COMMIT_TIMEOUT_S:.0f} s", path=str(paths.root)
                )
            time.sleep(_POLL_S)
        return checkpoint.committed_offset
    finally:
        checkpoint.close()
