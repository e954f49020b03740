"""The last batch, changed at every byte below the durable floor: that is damage. Nothing is cut, and it is reported."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from services.writer.config import WriterSettings
from services.writer.log.open_store import open_store, release_store
from tests.crash.simulated_disk.boots import FIRST, NEXT, booted
from tests.crash.simulated_disk.in_process import InProcessWriter
from tests.crash.simulated_disk.pipeline import drain
from tests.crash.simulated_disk.promises import Sent
from tests.crash.simulated_disk.reading import Readers
from tests.crash.simulated_disk.tree import Tree, put_tree
from tidemark.errors import StoreError
from tidemark.index.ledger import read_ledger
from tidemark.store.storage import DiskStorage

from .fields import UNCHECKED, fields_of, is_checked
from .layout import BEFORE, KINDS, SEGMENT_SIZE, SETTINGS, SIMPLE, Layout, lay_out
from .test_torn_tail import with_floor

pytestmark = pytest.mark.crash

PLACES = list(itertools.product(KINDS, BEFORE))


def records_of(layout: Layout) -> list[tuple[int, bytes]]:
    """Return (physical offset, bytes) of the last batch's records."""
    records, at = [], layout.start
    while at < layout.end:
        size = int.from_bytes(layout.bytes_at(at, at + 4), "big")
        records.append((at, layout.bytes_at(at, at + size)))
        at += size
    return records


class Damaged:
    """Opens one store repeatedly, with different damage below the floor."""

    def __init__(self, layout: Layout, root: Path) -> None:
        self._layout = layout
        self.root = root
        self._settings = WriterSettings(store_root=root, min_free_disk_bytes=0, **SETTINGS)

    def put(self, tree: Tree) -> None:
        put_tree(with_floor(tree, self._layout.end), self.root)

    def damages(self) -> list[tuple[int, int]]:
        """Return (physical offset, size) of recovery's findings; it must not change a byte, nor end the log earlier."""
        log = self.root / "commitlog"
        before = {path.name: path.read_bytes() for path in log.iterdir()}
        store = open_store(self._settings, DiskStorage())
        release_store(store)
        assert store.recovered.end == self._layout.end, "recovery cut the log"
        assert {path.name: path.read_bytes() for path in log.iterdir()} == before, "recovery changed bytes"
        return [(damage.physical_offset, damage.size) for damage in store.recovered.damages]

    def build_and_read(self) -> tuple[set[int], list[bytes]]:
        """Append after the damage; return the places in the ledger, and the bodies that readers get."""
        with InProcessWriter(self.root, **SETTINGS) as writer:
            (answer,) = writer.append(Sent(50, SIMPLE).request())
            assert not isinstance(answer, StoreError), answer
            assert answer.physical_offset == self._layout.end or answer.physical_offset % SEGMENT_SIZE == 0
            drain(self.root)
            with contextlib.closing(Readers(self.root)) as readers:
                assert readers.watermark.physical_offset == readers.watermark.committed_offset
                bodies = [seen.body for topic in readers.topics for seen in readers.pulled(topic)[0]]
        return {entry["physical_offset"] for entry in read_ledger(self.root / "tidemark" / "indexer")}, bodies


def others_of(layout: Layout, damaged: Iterable[int]) -> list[bytes]:
    """Return the bodies of all records except those at these places, including the later append."""
    (sent,) = (sent for sent in layout.promises.sent.values() if sent.number not in layout.promises.acknowledged)
    whole = [one for one in layout.promises.sent.values() if one is not sent]
    bodies = [one.body(i) for one in (*whole, Sent(50, SIMPLE)) for i in range(one.messages)]
    if not sent.inner:
        places = [place for place, _ in records_of(layout)]
        bodies += [sent.body(i) for i, place in enumerate(places) if place not in damaged]
    return bodies


def flip_all(kind: str, place: str, folder: Path, *, every: int, built: int) -> Counter[str]:
    """Flip a bit of every *every*-th byte; build and read every *built*-th of these. Return the detections by field."""
    layout = lay_out(folder / "made", kind, place)
    damaged = Damaged(layout, folder / "state")
    noticed: Counter[str] = Counter()
    number = 0
    before = layout.place_before
    for start, record in records_of(layout):
        for at in range(number % every, len(record), every):
            number += 1
            bit = at % 8
            damaged.put(layout.spoiled(start + at, bytes([record[at] ^ 1 << bit])))
            field = next(field.name for field in fields_of(record) if field.start <= at < field.end)
            with booted(NEXT if number % 2 else FIRST):
                found = damaged.damages()
                where = f"bit {bit} of byte {at} ({field}) of the record at {start}"
                if is_checked(record, at, bit, before=before):
                    assert [place for place, _ in found] == [start], where
                    noticed["noticed"] += 1
                else:
                    assert found == [], f"{where}: more is checked than is documented"
                    noticed[field] += 1
                if number % built == 0:
                    ledger, bodies = damaged.build_and_read()
                    if found:
                        assert start in ledger, where
                    hidden = [start]
                    if field == "queue_offset" and not found:  # numbers that seem to be used already are not built
                        hidden += [place for place, _ in records_of(layout) if place > start]
                    assert all(body in bodies for body in others_of(layout, hidden)), where
        before = start
    return noticed


@pytest.mark.parametrize(("kind", "place"), PLACES)
def test_some_flipped_bits_below_the_floor_are_reported(kind: str, place: str, folder: Path) -> None:
    """The quick part flips every 23rd byte."""
    assert flip_all(kind, place, folder, every=23, built=3)["noticed"] > 0


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "place"), PLACES)
def test_a_flipped_bit_of_every_byte_below_the_floor_is_reported_as_documented(
    kind: str, place: str, folder: Path, tell: Callable[[str], None]
) -> None:
    """The detected and the undetectable flips are exactly those of the field table (docs/guarantees.md)."""
    noticed = flip_all(kind, place, folder, every=1, built=1 if place == "in the middle" else 7)
    without_check = {name: count for name, count in noticed.items() if name != "noticed"}
    assert UNCHECKED - {"queue_offset"} <= set(without_check) <= UNCHECKED
    tell(
        f"damage below the floor, {kind} {place}: {noticed['noticed']} flips detected, "
        f"{sum(without_check.values())} of bytes without a check"
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "place"), PLACES)
def test_a_log_cut_at_every_byte_below_the_floor_is_reported(
    kind: str, place: str, folder: Path, tell: Callable[[str], None]
) -> None:
    """The missing data is reported from the first incomplete record on; nothing else is lost."""
    layout = lay_out(folder / "made", kind, place)
    damaged = Damaged(layout, folder / "state")
    records = records_of(layout)
    states = unnoticed = 0
    for at in range(layout.start, layout.end):
        rest = bytes(layout.end - at)
        if rest == layout.bytes_at(at, layout.end):
            continue
        states += 1
        start, record = next((s, r) for s, r in records if s <= at < s + len(r))
        damaged.put(layout.spoiled(at, rest))
        with booted(NEXT if at % 2 else FIRST):
            found = damaged.damages()
            if at >= start + fields_of(record)[-1].start:  # the text of properties has no checksum; lengths are right
                unnoticed += not found
            else:
                assert found[0][0] == start
            assert sum(size for _, size in found) <= layout.end - start
            if at % 7 == 0:
                lost = [place for place, _ in records if place >= start]
                ledger, bodies = damaged.build_and_read()
                assert {place for place, _ in found} <= ledger
                assert all(body in bodies for body in others_of(layout, lost))
    tell(f"cut below the floor, {kind} {place}: {states} states, {unnoticed} within the last properties: not detected")
