"""The small originals of a store, which cannot be derived from its log, and their repair."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import NamedTuple

from tidemark.errors import CorruptStoreError
from tidemark.store.originals.checked_copy import FileRules, ValidContent, heal, is_sound, read_file, write_checked
from tidemark.store.originals.format_file import FORMAT_FORM
from tidemark.store.originals.next_offsets import NEXT_OFFSETS_FORM
from tidemark.store.originals.terms import TERMS_FORM
from tidemark.store.originals.tombstones import TOMBSTONES_FORM
from tidemark.store.originals.topics import CONFIG_FORM
from tidemark.store.paths import StorePaths
from tidemark.store.storage import Storage


class OriginalFile(NamedTuple):
    """One file and its form."""

    path: Path
    form: FileRules


class RepairOutcome(enum.StrEnum):
    """The result of a repair."""

    SOUND = "sound"
    ABSENT = "absent"
    COPIED = "checked copy written"
    CHANGED = "changed by another program, checked copy written"
    RESTORED = "restored from the checked copy"
    OLDER = "replaced by its older .bak"
    LOST = "lost"


class Repair(NamedTuple):
    """Result of one file's repair. cause: why the file was not used."""

    path: Path
    outcome: RepairOutcome
    cause: str = ""


def writers_originals(paths: StorePaths) -> tuple[OriginalFile, ...]:
    """Return the originals that the writer owns."""
    return (
        OriginalFile(paths.format_file, FORMAT_FORM),
        OriginalFile(paths.terms, TERMS_FORM),
        OriginalFile(paths.tombstones, TOMBSTONES_FORM),
        OriginalFile(paths.next_offsets, NEXT_OFFSETS_FORM),
        OriginalFile(paths.topics, CONFIG_FORM),
        OriginalFile(paths.delay_offsets, CONFIG_FORM),
    )


def querys_originals(paths: StorePaths) -> tuple[OriginalFile, ...]:
    """Return the originals that the query service owns."""
    return (OriginalFile(paths.consumer_offsets, CONFIG_FORM),)


def repair(original: OriginalFile, storage: Storage, *, accept_older: bool = False) -> Repair:
    """Restore a file or its checked copy from the other one; with *accept_older*, both from the file's `.bak`.

    Damage never raises: the outcome is LOST if no sound content is left.
    """
    path, form = original
    try:
        choice = heal(path, form, storage)
    except CorruptStoreError as error:
        return (
            _from_previous(original, storage, error.message)
            if accept_older
            else Repair(path, RepairOutcome.LOST, str(error))
        )
    if choice.data is not None and not is_sound(choice.data, form):
        cause = f"{path} is damaged and has no checked copy"
        return _from_previous(original, storage, cause) if accept_older else Repair(path, RepairOutcome.LOST, cause)
    return Repair(path, _outcome(choice), choice.fault or "")


def _outcome(choice: ValidContent) -> RepairOutcome:
    if choice.data is None:
        return RepairOutcome.ABSENT
    if choice.fault is not None:
        return RepairOutcome.RESTORED
    if choice.is_foreign:
        return RepairOutcome.CHANGED
    return RepairOutcome.SOUND if choice.is_copy_sound else RepairOutcome.COPIED


def _from_previous(original: OriginalFile, storage: Storage, cause: str) -> Repair:
    path, form = original
    data = read_file(path.with_name(f"{path.name}.bak"))
    if data is None or not is_sound(data, form):
        return Repair(path, RepairOutcome.LOST, f"{cause}; its .bak cannot be read either")
    write_checked(path, data, storage, keep_previous=False)
    return Repair(path, RepairOutcome.OLDER, cause)
