"""docs/format.md matches the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from services.indexer.pipeline.config import PipelineSettings
from services.writer.log.queue_offsets import QueueOffsets, Snapshot, save_snapshot
from tests import builders
from tidemark.backup.manifest import BackedFile, BackupManifest, save_manifest
from tidemark.format import (
    batch_consume_queue,
    consume_queue,
    consume_queue_ext,
    elements,
    index_file,
    index_layout,
    record,
)
from tidemark.format.dispatch_request import Fault
from tidemark.format.record import Magic
from tidemark.format.sys_flag import SysFlag
from tidemark.index import build
from tidemark.index.ledger import Ledger, ledger_path
from tidemark.store.checkpoint import CHECKPOINT_SIZE, Field
from tidemark.store.marks import MARKS_SIZE, Marks
from tidemark.store.originals.format_file import FORMAT, say_unfinished, write_format
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

Table = list[list[str]]
DOCS = (Path(__file__).parents[3] / "docs" / "format.md").read_text()


def tables(section: int) -> list[Table]:
    """Return the indented tables of a section: their rows, whose cells are separated by two or more spaces."""
    (text,) = re.findall(rf"^## {section}\..*?\n(.*?)(?=^## |\Z)", DOCS, re.S | re.M)
    found = re.findall(r"((?:^    \S.*\n)+)", text, re.M)
    return [[re.split(r" {2,}", row.strip()) for row in table.splitlines()] for table in found]


def layout(table: Table) -> list[tuple[int, str, str]]:
    return [(int(at), name, kind) for at, name, kind, *_ in table]


def keys(table: Table) -> list[str]:
    """Return the first cells; one cell may have several names."""
    return [name for row in table for name in row[0].split(", ")]


def layout_of(dtype: np.dtype[Any]) -> list[tuple[int, str, str]]:
    """Return the position, name and type of each field, as a table must show them."""
    assert dtype.fields is not None
    types = {"V": "{} bytes", "i": "i{}"}
    return [(int(at), name, types[field.kind].format(field.itemsize)) for name, (field, at, *_) in dtype.fields.items()]


@pytest.mark.parametrize(
    ("section", "number", "dtype"),
    [
        (2, 0, record.HEAD),
        (4, 0, consume_queue.UNIT),
        (4, 1, consume_queue_ext.UNIT),
        (5, 0, batch_consume_queue.UNIT),
        (6, 0, index_layout.HEADER),
        (6, 1, index_layout.ENTRY),
    ],
)
def test_the_documented_field_tables_match_the_dtypes(section: int, number: int, dtype: np.dtype[Any]) -> None:
    """Position, name and type of every field match, and every dtype is big-endian."""
    assert layout(tables(section)[number]) == layout_of(dtype)
    assert all(field.byteorder in ">|" for field, *_ in (dtype.fields or {}).values())


@pytest.mark.parametrize(("born", "store"), record.HEADS)
def test_a_host_of_20_bytes_moves_later_fields_by_12(born: int, store: int) -> None:
    """One table describes all four heads by this rule."""
    for at, name, _ in layout(tables(2)[0]):
        moved = (12 if born == 20 and at > 48 else 0) + (12 if store == 20 and at > 64 else 0)
        fields = record.HEADS[born, store].fields
        assert fields is not None
        assert fields[name][1] == at + moved


def test_the_documented_magics_and_flags_match_the_enums() -> None:
    """Names, values and bytes match."""
    _, _, magics, flags = tables(2)
    assert {name: int(value) for name, value, *_ in magics} == {magic.name: magic.value for magic in Magic}
    assert all(bytes.fromhex(raw) == int(value).to_bytes(4, "big", signed=True) for _, value, raw, _ in magics)
    assert {name: int(bits, 16) for bits, name, *_ in flags} == {
        name: flag.value for name, flag in SysFlag.__members__.items()
    }


def test_the_documented_wire_batch_matches_an_element() -> None:
    """An element has five numbers of four bytes, the body, and a number of two bytes."""
    rows = tables(3)[0]
    assert [int(at) for at, *_ in rows[:5]] == list(range(0, elements.ELEMENT_HEAD.size, 4))
    assert [kind for _, _, kind, _ in rows] == ["i4"] * 5 + ["i2"]
    assert rows[5][0] == f"{elements.ELEMENT_HEAD.size} + body"
    element = builders.wire_element(b"body", b"properties", 7)
    names = [name for _, name, _, _ in rows[:5]]
    values = dict(zip(names, elements.ELEMENT_HEAD.unpack_from(element), strict=True))
    assert values == {"size": 36, "magic": 0, "body_crc": 0, "flag": 7, "body_length": 4}
    assert element[24:26] == bytes([0, 10])


def test_the_documented_checkpoint_matches_its_fields() -> None:
    """Field n is at byte 8 n."""
    assert layout(tables(7)[0]) == [(8 * field, field.name.lower(), "i8") for field in Field]
    assert f"{CHECKPOINT_SIZE} bytes" in DOCS


def test_the_documented_marks_match_the_written_words(tmp_path: Path) -> None:
    """Each word holds the value that its name states."""
    marks = Marks.open_to_write(tmp_path / "marks", DiskStorage(), shards=2, term=7)
    marks.say_alive()
    marks.intend(1, 44)
    marks.publish(1, 33)
    marks.publish(0, 55)
    marks.publish_durable(1, 22)
    words = np.fromfile(tmp_path / "marks", np.uint64)
    at = {name: int(word.split()[0]) + (4 if word.endswith("+ 4 s") else 0) for word, name, _ in tables(8)[0]}
    assert words[at["magic"]].tobytes() == b"TIDEMRK1"
    told = {name: int(words[place]) for name, place in at.items()}
    assert (told["shards"], told["time"], told["alive"]) == (2, marks.published_ms, marks.alive_ms)
    assert (told["visible"], told["durable"], told["term"], told["intended"]) == (33, 22, 7, 44)
    assert told["boot"] > 0
    assert len(words) * 8 == MARKS_SIZE
    used = {*at.values(), 8, 8 + 2}
    assert not any(words[place] for place in range(len(words)) if place not in used)
    marks.close()


def test_queue_offsets_have_the_documented_keys(tmp_path: Path) -> None:
    """The writer leaves this JSON."""
    save_snapshot(tmp_path / "queue_offsets", Snapshot(5, 6, QueueOffsets()), DiskStorage())
    content = orjson.loads((tmp_path / "queue_offsets").read_bytes())
    assert set(keys(tables(9)[2])) == set(content)
    assert ["version", str(content["version"])] in tables(9)[2]


def test_the_ledger_has_the_documented_keys(tmp_path: Path) -> None:
    """Each line is an object with these keys in this order."""
    Ledger(tmp_path, 0, DiskStorage()).record(physical_offset=1, size=2, reason="MAGIC")
    (line,) = ledger_path(tmp_path, 0).read_bytes().splitlines()
    assert keys(tables(9)[3]) == list(orjson.loads(line))


def test_all_ledger_reasons_are_documented() -> None:
    """The reasons are every fault of a walk, the missing file, misfits of light queues, and the builders' oddities."""
    odd = set(re.findall(r"[A-Z]+_[A-Z]+", build.Oddity.__doc__ or ""))
    other = {"FILE_MISSING", "MULTI_DISPATCH"}
    assert set(keys(tables(9)[4])) == {fault.name for fault in Fault if fault} | other | odd


def test_the_documented_sizes_are_the_defaults() -> None:
    """A reader uses them unless others are configured."""
    for number in (
        index_file.file_size(index_file.DEFAULT_SLOTS, index_file.DEFAULT_ENTRIES),
        index_file.DEFAULT_SLOTS,
        index_file.DEFAULT_ENTRIES,
        300_000 * consume_queue.UNIT_SIZE,
        300_000 * batch_consume_queue.UNIT_SIZE,
        PipelineSettings().consume_queue_ext_file_size_bytes,
    ):
        assert f"{number:,}" in DOCS


def test_the_format_file_has_the_documented_keys(tmp_path: Path) -> None:
    """The writer writes the file, and an unfinished restore leaves it with its own keys."""
    paths = StorePaths(tmp_path)
    write_format(paths, DiskStorage())
    content = orjson.loads(paths.format_file.read_bytes())
    say_unfinished(paths, DiskStorage())
    assert keys(tables(11)[0]) == [*content, *orjson.loads(paths.format_file.read_bytes())]
    assert orjson.loads(tables(11)[0][0][1]) == content["version"] == FORMAT._asdict()


def test_the_manifest_has_the_documented_keys(tmp_path: Path) -> None:
    """This covers the keys of the backup and of each of its files."""
    save_manifest(tmp_path, BackupManifest("s", 1, 0, 0, 1, 2, (BackedFile("p", "q", 3, "f"),)), DiskStorage())
    content = orjson.loads((tmp_path / "manifest.json").read_bytes())
    rows = tables(12)[0]
    assert keys(rows) == list(content)
    assert set(content["files"][0]) <= set(re.findall(r"\w+", rows[-1][1]))
