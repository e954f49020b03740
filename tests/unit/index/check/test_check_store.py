"""Checks of stores: a real broker's are sound, and each kind of planted damage gives exactly one finding."""

from __future__ import annotations

import dataclasses
import json
import shutil
import struct
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.format.golden import STORES
from tests.pipeline_runs import GOLDEN_SETTINGS, build, plan_of, without_derived
from tidemark.index.check.findings import MEANINGS, Finding, Note, Reason, Scope
from tidemark.index.check.scope import whole_store
from tidemark.index.check.store import CheckReport, check_store
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.marks import Marks
from tidemark.store.originals.next_offsets import NextOffsets, save_next_offsets
from tidemark.store.originals.terms import begin_term
from tidemark.store.originals.tombstones import Tombstone, save_tombstones
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

GoldenStore = Callable[[str], Path]
QUEUE = "consumequeue/Orders/0/00000000000000000000"
BATCH_QUEUE = "batchconsumequeue/BatchOrders/0/00000000000000000000"
UNIT = 10  # the unit of QUEUE, and its record, that are damaged
SLOTS, ENTRY = 500, 50  # of the first index file
LOG_FILE_SIZE = 1 << 20


@pytest.fixture
def store(golden_store: GoldenStore, tmp_path: Path) -> Path:
    """Return a broker's store to be damaged."""
    return Path(shutil.copytree(golden_store("mixed/store"), tmp_path / "store"))


def check(root: Path, *, with_index: bool = True, **scope: object) -> CheckReport:
    paths = StorePaths(root)
    return check_store(paths, dataclasses.replace(whole_store(paths), **scope), with_index=with_index)  # type: ignore[arg-type]


def reasons(found: list[Finding]) -> list[str]:
    return [finding.reason for finding in found]


def poke(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def flip(path: Path, at: int) -> None:
    poke(path, at, bytes([path.read_bytes()[at] ^ 0x10]))


def record_of_unit(root: Path) -> int:
    return int(struct.unpack_from(">q", (root / QUEUE).read_bytes(), 20 * UNIT)[0])


def flip_in_record(at: int) -> Callable[[Path], None]:
    def damage(root: Path) -> None:
        place = record_of_unit(root) + at
        flip(root / "commitlog" / f"{place - place % LOG_FILE_SIZE:020d}", place % LOG_FILE_SIZE)

    return damage


def index_file(root: Path, number: int = 0) -> Path:
    return sorted((root / "index").iterdir())[number]


def entry_at(number: int) -> int:
    return 40 + 4 * SLOTS + 20 * number


def break_slot(root: Path) -> None:
    path = index_file(root)
    (hashed,) = struct.unpack_from(">i", path.read_bytes(), entry_at(ENTRY))
    poke(path, 40 + 4 * (hashed % SLOTS), struct.pack(">i", 1))


def add_extra_unit(root: Path) -> None:
    path = sorted((root / QUEUE).parent.iterdir())[-1]
    data = path.read_bytes()
    end = next(at for at in range(0, len(data), 20) if not any(data[at : at + 20]))
    poke(path, end, data[:20])


def write_offset(root: Path) -> None:
    table = {"offsetTable": {"Orders@late": {"0": 1_000_000, "1": 0}}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps(table))


def commit_too_much(root: Path) -> None:
    checkpoint = Checkpoint.open_to_write(root / "checkpoint", DiskStorage())
    checkpoint.set(Field.CONFIRM_PHYSICAL_OFFSET, 1 << 40)
    checkpoint.close()


def mark_too_much(root: Path) -> None:
    marks = Marks.open_to_write(StorePaths(root).marks, DiskStorage(), shards=1, term=0)
    marks.publish(0, 1 << 40)
    marks.close()


def forget_numbers(root: Path) -> None:
    save = NextOffsets(2 * LOG_FILE_SIZE, 0, {})
    paths = StorePaths(root)
    paths.writer.mkdir(parents=True)
    save_next_offsets(paths.next_offsets, save, DiskStorage())


def tear_terms(root: Path) -> None:
    begin_term(StorePaths(root).terms, 0, DiskStorage())
    StorePaths(root).terms.write_bytes(b"1 0 boot\nx\n")


def write_terms_without_copy(root: Path, lines: bytes) -> None:
    StorePaths(root).terms.parent.mkdir(parents=True, exist_ok=True)
    StorePaths(root).terms.write_bytes(lines)


DAMAGES: list[tuple[str, str, Callable[[Path], object]]] = [
    ("body", "BODY_CRC", flip_in_record(91)),
    ("magic", "MAGIC", flip_in_record(5)),
    ("length", "LENGTH", flip_in_record(2)),
    ("position", "POSITION", flip_in_record(33)),
    ("queue offset", "QUEUE_OFFSET", flip_in_record(26)),
    ("log file gone", "FILE_MISSING", lambda root: (root / f"commitlog/{LOG_FILE_SIZE:020d}").unlink()),
    ("unit zero", Reason.UNIT_MISSING, lambda root: poke(root / QUEUE, 20 * UNIT, bytes(20))),
    ("unit's place", Reason.UNIT_WRONG, lambda root: flip(root / QUEUE, 20 * UNIT + 7)),
    ("unit's tags", Reason.UNIT_WRONG, lambda root: flip(root / QUEUE, 20 * UNIT + 19)),
    ("queue gone", Reason.UNIT_MISSING, lambda root: shutil.rmtree((root / QUEUE).parent)),
    ("queue file gone", Reason.UNIT_MISSING, lambda root: (root / BATCH_QUEUE).unlink()),
    ("batch unit zero", Reason.UNIT_MISSING, lambda root: poke(root / BATCH_QUEUE, 46, bytes(46))),
    ("batch unit's base", Reason.UNIT_WRONG, lambda root: flip(root / BATCH_QUEUE, 46 + 30)),
    ("unit too many", Reason.UNIT_EXTRA, add_extra_unit),
    ("foreign file in the log", Reason.FOREIGN_FILE, lambda root: (root / "commitlog" / "README").write_text("x")),
    ("foreign file at a topic", Reason.FOREIGN_FILE, lambda root: (root / QUEUE).parent.with_name("x").write_text("x")),
    ("foreign folder", Reason.FOREIGN_FILE, lambda root: (root / "consumequeue" / "a.b").mkdir()),
    ("foreign index file", Reason.FOREIGN_FILE, lambda root: (root / "index" / "x.tmp").write_text("x")),
    (
        "index file of another size",
        Reason.FILE_SIZE,
        lambda root: (root / "index" / "99990101000000000").write_text("x"),
    ),
    ("index hash", Reason.KEY_WRONG, lambda root: flip(index_file(root), entry_at(ENTRY) + 1)),
    ("index place", Reason.KEY_WRONG, lambda root: flip(index_file(root), entry_at(ENTRY) + 9)),
    ("index time", Reason.KEY_TIME, lambda root: flip(index_file(root), entry_at(ENTRY) + 15)),
    ("index chain", Reason.KEY_CHAIN, lambda root: flip(index_file(root), entry_at(ENTRY) + 19)),
    ("index slot", Reason.KEY_CHAIN, break_slot),
    ("index header's end", Reason.INDEX_HEADER, lambda root: flip(index_file(root), 31)),
    ("index header's slots", Reason.INDEX_HEADER, lambda root: flip(index_file(root), 35)),
    ("index file in the middle gone", Reason.KEY_MISSING, lambda root: index_file(root, 1).unlink()),
    ("index gone to another log", Reason.KEY_EXTRA, lambda root: shutil.copy(index_file(root), root / "index/9")),
    ("topics torn", Reason.CONFIG, lambda root: poke(root / "config/topics.json", 0, bytes(9))),
    ("offsets of another shape", Reason.CONFIG, lambda root: (root / "config/consumerOffset.json").write_text("[1]")),
    ("offset above the queue", Reason.CONSUMER_OFFSET, write_offset),
    ("committed above the log", Reason.CHECKPOINT, commit_too_much),
    ("watermark above the log", Reason.MARKS, mark_too_much),
    ("terms torn", Reason.TERMS, tear_terms),
    ("terms without a copy torn", Reason.TERMS, lambda root: write_terms_without_copy(root, b"1 0 boot\nx\n")),
    ("terms without a copy with a gap", Reason.TERMS, lambda root: write_terms_without_copy(root, b"1 0 b\n3 0 b\n")),
    ("numbers behind the log", Reason.NUMBERS, forget_numbers),
]


@pytest.mark.parametrize("name", STORES)
def test_a_brokers_store_is_sound(golden_store: GoldenStore, name: str) -> None:
    """The stores have delays, transactions, batches, many rolls, expired heads, and a kill."""
    report = check(golden_store(name))
    assert report.findings == []
    assert report.records > 400


@pytest.mark.parametrize(("reason", "damage"), [damage[1:] for damage in DAMAGES], ids=[d[0] for d in DAMAGES])
def test_each_kind_of_damage_is_found_once(store: Path, reason: str, damage: Callable[[Path], object]) -> None:
    """There is one finding of that reason, or one per affected queue or file, and no other."""
    damage(store)
    found = check(store).findings
    assert set(reasons(found)) == {reason}
    if reason not in (Reason.NUMBERS, Reason.KEY_EXTRA, Reason.CHECKPOINT):
        assert len(found) == 1
    assert all(finding.text and "\n" not in finding.text for finding in found)


def test_a_term_that_a_crash_cut_off_is_no_finding(store: Path) -> None:
    """Readers ignore it."""
    write_terms_without_copy(store, b"1 0 boot\n2 0")
    assert check(store).findings == []


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_file_that_is_missing_between_two_renames_is_no_finding(store: Path, is_replaced: bool) -> None:
    """A writer's first save renames the copy before the file, and the check may look between the two renames."""
    paths = StorePaths(store)
    begin_term(paths.terms, 0, DiskStorage())
    waiting = paths.terms.rename(paths.terms.with_name("terms.tmp"))
    rename = threading.Timer(0.1, waiting.rename, [paths.terms])
    if is_replaced:
        rename.start()
    found = reasons(check(store).findings)
    assert found == ([] if is_replaced else [Reason.TERMS])


def test_every_reason_of_a_finding_has_a_test() -> None:
    """Every reason has a test; the reasons that are not planted are a record's own oddities."""
    planted = {str(reason) for _, reason, _ in DAMAGES}
    assert {str(reason) for reason in Reason} - planted == {"QUEUE_TYPE"}
    assert set(MEANINGS) == set(Reason)


def test_a_queue_of_the_other_type_is_found(store: Path) -> None:
    """topics.json says SimpleCQ, but the queue is a BatchConsumeQueue."""
    path = store / "config" / "topics.json"
    path.write_text(path.read_text().replace("BatchCQ", "SimpleCQ"))
    assert set(reasons(check(store).findings)) == {Reason.QUEUE_TYPE}


def test_a_torn_tail_and_lagging_queues_are_notes(golden_store: GoldenStore, tmp_path: Path) -> None:
    """A killed broker leaves both, and removes both at its next start. A cleanly closed store must not have them."""
    root = Path(shutil.copytree(golden_store("killed/store-killed"), tmp_path / "store"))
    end = check(root).end
    poke(root / "commitlog" / f"{end - end % (1 << 19):020d}", end % (1 << 19), b"\0\0\1\1\xda\xa3\x20\xa7torn")
    queue = sorted((root / "consumequeue/Orders/0").iterdir())[-1]
    units = queue.read_bytes().rstrip(b"\0")
    poke(queue, (len(units) - 1) // 20 * 20 - 40, bytes(60))
    report = check(root)
    assert report.findings == []
    assert {Note.TORN_TAIL, Note.QUEUES_LAG} <= set(reasons(report.notes))
    assert next(note.count for note in report.notes if note.reason == Note.QUEUES_LAG) == 3
    (root / "abort").unlink()
    assert reasons(check(root).findings) == [Reason.UNIT_MISSING]


def test_a_built_store_is_sound_and_may_lag_only_above_the_watermark(golden_store: GoldenStore, tmp_path: Path) -> None:
    """Data below the watermark must be in queues and index; data above it may be missing."""
    root = without_derived(golden_store("mixed/store"), tmp_path / "store")
    plan = plan_of(root, **GOLDEN_SETTINGS["mixed/store"])
    build(plan)
    assert check(root).findings == check(root).notes == []
    shutil.rmtree(root / "consumequeue")
    assert set(reasons(check(root).findings)) == {Reason.UNIT_MISSING}
    marks = Marks.open_to_write(plan.paths.marks, DiskStorage(), shards=plan.all_shards, term=0)
    for shard in range(plan.all_shards):
        marks.set_back(shard, 0)
    marks.close()
    report = check(root)
    assert report.findings == []
    assert reasons(report.notes) == [Note.QUEUES_LAG]


def test_a_check_of_a_range_reports_only_damage_in_it(store: Path) -> None:
    """It begins at the first record at or after its start, and ends at its end."""
    place = record_of_unit(store)
    flip_in_record(91)(store)
    for start, end, found in (
        (place + 1, None, 0),
        (place, place + 1500, 1),
        (place - 10, place + 1500, 1),
        (0, place, 0),
    ):
        report = check(store, start=start, end=end, is_range=True)
        assert reasons(report.findings) == ["BODY_CRC"] * found
        assert report.records > 0


def test_damaged_units_are_reported_in_the_range_of_their_record(store: Path) -> None:
    """Damage of a queue is found only in the range of its record."""
    place = record_of_unit(store)
    poke(store / QUEUE, 20 * UNIT, bytes(20))
    assert reasons(check(store, start=place + 3000, is_range=True).findings) == []
    assert reasons(check(store, start=0, end=place + 3000, is_range=True).findings) == [Reason.UNIT_MISSING]


def test_a_check_without_the_index_does_not_read_it(store: Path) -> None:
    """--no-index reads none of it."""
    break_slot(store)
    assert check(store, with_index=False).findings == []


def test_records_of_a_deleted_topic_need_no_units(store: Path) -> None:
    """Records below a tombstone need no units, though their units may still exist."""
    paths = StorePaths(store)
    paths.writer.mkdir(parents=True)
    save_tombstones(paths.tombstones, [Tombstone("Orders", check(store).end, {})], DiskStorage())
    assert check(store).findings == []
    shutil.rmtree(store / "consumequeue" / "Orders")
    assert check(store).findings == []


def test_a_check_writes_nothing(store: Path) -> None:
    """Files, bytes and times stay the same; no lock is left."""
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in store.rglob("*")}
    check(store)
    assert {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in store.rglob("*")} == before


def test_a_check_accepts_a_scope_without_tidemark_files(store: Path) -> None:
    """A caller that follows a broker supplies the end itself."""
    whole = check(store)
    report = check_store(StorePaths(store), Scope(end=whole.end, floor=whole.end, is_living=True))
    assert (report.findings, report.end, report.records) == ([], whole.end, whole.records)


def test_files_that_a_running_writer_has_saved_after_the_checks_end_are_no_finding(store: Path) -> None:
    paths, end = StorePaths(store), check(store).end
    paths.writer.mkdir(parents=True)
    save_next_offsets(paths.next_offsets, NextOffsets(end + 100, 0, {}), DiskStorage())
    write_offset(store)
    scope = Scope(end=end, floor=end)
    assert {one.reason for one in check_store(paths, scope).findings} >= {Reason.NUMBERS, Reason.CONSUMER_OFFSET}
    assert check_store(paths, dataclasses.replace(scope, is_living=True)).findings == []


def test_the_docs_explain_each_reason() -> None:
    """The list of docs/operations.md matches the code."""
    text = (Path(__file__).parents[4] / "docs" / "operations.md").read_text()
    findings = "\n".join(f"- {reason}: {meaning}" for reason, meaning in MEANINGS.items())
    assert f"\n\n{findings}\n\n" in text
    assert all(f"`{note}`" in text for note in Note)


@pytest.mark.parametrize("lost", ["entries", "header", "slots"])
def test_index_content_above_the_durable_mark_lags_after_a_power_cut(
    golden_store: GoldenStore, tmp_path: Path, lost: str
) -> None:
    """The next start builds it again; below the durable mark the same loss is damage."""
    root = without_derived(golden_store("mixed/store"), tmp_path / "store")
    plan = plan_of(root, **GOLDEN_SETTINGS["mixed/store"])
    build(plan)
    (root / "abort").touch()
    newest = sorted((root / "index").iterdir())[-1]
    count = struct.unpack_from(">i", newest.read_bytes(), 36)[0]
    place = struct.unpack_from(">q", newest.read_bytes(), entry_at(count - 3) + 4)[0]
    if lost == "entries":
        poke(newest, entry_at(count - 3), bytes(60))
    elif lost == "header":
        poke(newest, 36, struct.pack(">i", count - 3))
    else:
        poke(newest, 40, bytes(4 * SLOTS))
    assert check(root).findings
    marks = Marks.open_to_write(plan.paths.marks, DiskStorage(), shards=plan.all_shards, term=0)
    marks.publish_durable(plan.shards, place)
    marks.close()
    report = check(root)
    assert report.findings == []
    if lost != "slots":
        assert reasons(report.notes) == [Note.INDEX_LAGS]
