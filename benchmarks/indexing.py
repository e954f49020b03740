"""Measures one `pipeline --once` or `tidemark store rebuild` by watching the marks file."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.clock import clock
from benchmarks.stack import FILE_SIZES
from tidemark.errors import CorruptStoreError
from tidemark.local.child_service import Service
from tidemark.settings.registry import service_module
from tidemark.store.marks import Marks
from tidemark.store.paths import StorePaths

ONCE = (service_module("indexer"), "pipeline", "--once")
_TIMEOUT_S = 1200.0
_POLL_S = 0.002


class Mark(NamedTuple):
    """The physical offsets that the shards had reached at a time."""

    seconds: float
    least_visible: int
    greatest_visible: int
    least_durable: int


class Indexing(NamedTuple):
    """The observed times, from the first mark that moves (after the first chunk) to the last mark at the log's end."""

    end_offset: int
    bytes_built: int
    build_s: float  # until the whole log is visible
    durable_s: float  # until the whole log is synced, too
    total_s: float  # from exec to exit


def index_once(data: Path, *arguments: str, settings: Mapping[str, str] | None = None) -> Indexing:
    """Run `python -m <arguments>`, by default the pipeline once, on the stopped store at *data*.

    Raises RuntimeError for an exit status other than 0, ValueError if the marks did not reach a common end.
    """
    environment = {**FILE_SIZES, **(settings or {}), "TIDEMARK_STORE_ROOT": str(data.absolute())}
    (data / "logs").mkdir(exist_ok=True)
    with clock():
        before = time.perf_counter()
        service = Service("indexing", list(arguments or ONCE), environment, data / "logs" / "indexing.log")
        try:
            trail = _watch(StorePaths(data).marks, lambda: service.exit_status is None)
            total_s = time.perf_counter() - before
        finally:
            status = service.stop(30)
    if status != 0:
        raise RuntimeError("\n".join([f"indexing ended with exit status {status}", *service.last_lines()]))
    return summarise(trail, total_s)


def _watch(path: Path, is_running: Callable[[], bool]) -> list[Mark]:
    """Return the marks, one entry for each change."""
    trail: list[Mark] = []
    deadline = time.monotonic() + _TIMEOUT_S
    marks: Marks | None = None
    while is_running() and time.monotonic() < deadline:
        if marks is None:
            with contextlib.suppress(FileNotFoundError, CorruptStoreError):
                marks = Marks.open_read_only(path)
        else:
            _note(marks, trail)
        time.sleep(_POLL_S)
    if marks is not None:
        _note(marks, trail)
        marks.close()
    return trail


def _note(marks: Marks, trail: list[Mark]) -> None:
    shards = range(marks.shards)
    if not shards:
        return
    visible, durable = [marks.visible(shard) for shard in shards], min(marks.durable(shard) for shard in shards)
    mark = Mark(time.perf_counter(), min(visible), max(visible), durable)
    if not trail or trail[-1][1:] != mark[1:]:
        trail.append(mark)


def summarise(trail: list[Mark], total_s: float) -> Indexing:
    """Return the figures of *trail*; that of a rebuild begins with the old marks. Raises ValueError without an end."""
    dropped = max((number for number, mark in enumerate(trail) if mark.greatest_visible == 0), default=0)
    marks = trail[dropped:]
    if not marks or not marks[-1].least_visible == marks[-1].greatest_visible == marks[-1].least_durable > 0:
        raise ValueError(f"the marks end at {marks[-1:]}, but all shards must reach the same offset above 0")
    end = marks[-1].least_visible
    first = next((mark for mark in marks if mark.greatest_visible > marks[0].greatest_visible), marks[-1])
    visible = next(mark for mark in marks if mark.least_visible == end)
    durable = next(mark for mark in marks if mark.least_visible == mark.least_durable == end)
    return Indexing(
        end, end - first.greatest_visible, visible.seconds - first.seconds, durable.seconds - first.seconds, total_s
    )
