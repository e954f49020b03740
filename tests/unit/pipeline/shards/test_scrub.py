"""The scrub over derived files of right size and wrong content: each is found, and rebuilt to the same bytes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from services.indexer.pipeline.shards.scrub import Scrub
from tests.pipeline_runs import build, plan_of
from tests.unit.pipeline.shards.test_rebuilding import SETTINGS as WITH_EXTENSIONS
from tests.unit.pipeline.shards.test_rebuilding import contents, derived, make_store
from tidemark.store.storage import DiskStorage

SETTINGS = {**WITH_EXTENSIONS, "enable_consume_queue_ext": False}
STEPS = 400


def scrub_round(root: Path, *, shards: int = 1, step: int = 1500) -> Scrub:
    """Scrub one round, rebuilding whenever damage is found, and return the scrub."""
    plan = plan_of(root, shards=shards, **SETTINGS)
    scrub = Scrub(plan, 1 << 20, DiskStorage())
    for _ in range(STEPS):
        scrub.scrub(step)
        if list(plan.paths.indexer.glob("rebuild-*")):
            build(plan_of(root, shards=shards, **SETTINGS))
        if scrub.rounds:
            return scrub
    raise AssertionError("the round did not end")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    store = make_store(tmp_path / "store")
    build(plan_of(store, **SETTINGS))
    return store


def test_a_scrub_of_a_sound_store_finds_nothing_and_starts_over(store: Path) -> None:
    scrub = scrub_round(store)
    assert (scrub.damaged_files, scrub.rounds, scrub.position) == (0, 1, 0)
    plan = plan_of(store, **SETTINGS)
    assert scrub.scrubbed_bytes == plan.limit


@pytest.mark.parametrize("how", ["flipped", "zeroed", "junk", "gone"])
def test_every_damaged_queue_or_index_file_is_found_and_rebuilt(store: Path, how: str) -> None:
    clean = contents(store)
    for number, path in enumerate(derived(store)):
        copy = Path(shutil.copytree(store, store.with_name("copy")))
        damaged = copy / path.relative_to(store)
        data = bytearray(damaged.read_bytes())
        if how == "flipped":
            live = max(i for i, byte in enumerate(data) if byte)
            data[live - number % 3] ^= 1 << number % 8
            damaged.write_bytes(data)
        elif how == "zeroed":
            damaged.write_bytes(bytes(len(data)))
        elif how == "junk":
            damaged.write_bytes(bytes(i * 37 % 251 for i in range(len(data))))
        else:
            damaged.unlink()
        scrub = scrub_round(copy, step=4000)
        assert scrub.damaged_files >= 1, path
        assert contents(copy) == clean, path
        shutil.rmtree(copy)


def test_a_scrub_continues_where_the_previous_one_stopped(store: Path) -> None:
    plan = plan_of(store, **SETTINGS)
    assert plan.limit is not None
    first = Scrub(plan, 1 << 20, DiskStorage())
    first.scrub(3000)
    second = Scrub(plan, 1 << 20, DiskStorage())
    assert 0 < first.position == second.position < plan.limit
    second.scrub_at_a_start()
    assert second.scrubbed_bytes == plan.limit - first.position


@pytest.mark.parametrize("content", [b"", b"junk", b"-5", str(1 << 60).encode()])
def test_a_damaged_scrub_position_starts_a_new_round(store: Path, content: bytes) -> None:
    plan = plan_of(store, **SETTINGS)
    (plan.paths.indexer / "scrubbed").write_bytes(content)
    scrub = scrub_round(store)
    assert scrub.damaged_files == 0
    assert scrub.position == 0
