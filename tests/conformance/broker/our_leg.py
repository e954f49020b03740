"""Tidemark's leg: it opens the directory, returns the broker's answers, appends, and leaves it."""

from __future__ import annotations

import contextlib
import enum
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.pipeline_runs import build, plan_of, queue_files, without_derived
from tests.query_server import serve_query
from tidemark.index.ledger import read_ledger
from tidemark.local.local_stack import PIPELINE, WRITER, LocalStack
from tidemark.store.marks import Marks
from tidemark.store.paths import StorePaths

from .counts import COUNTS
from .directory import check_nothing_foreign, drop_derived, queue_units
from .load import TidemarkLoad
from .messages import UNSETTLED
from .questions import ask, check_equal, check_keys
from .round import Round, check_alike
from .sides import RestSide

_SENDS = 120
_TIMEOUT_S = 240
_SHORT_TIMEOUT_S = 10  # of sends to a writer that does not come back


class Ending(enum.Enum):
    """The way in which Tidemark leaves the directory."""

    HANDED_BACK = enum.auto()  # the pipeline lags; `store hand-back` does the rest
    LAGGING = enum.auto()  # the pipeline lags, and no command follows
    KILLED = enum.auto()  # SIGKILL during appends
    CLEAN = enum.auto()  # all is built, then stopped


def our_leg(this: Round, ending: Ending, *, rebuild: bool, kill_pipeline: bool) -> None:
    """Run one leg. rebuild: from nothing, with queue folders and index deleted; otherwise on the existing files."""
    environment = {
        **this.sizes.as_environment(),
        "TIDEMARK_FLUSH_MODE": this.draw.choice(("sync", "async")),
        "TIDEMARK_ADVERTISED_ADDRESS": this.broker.address,
        "TIDEMARK_SHARDS": str(this.draw.randrange(1, 4)),
    }
    leg = _Leg(this, environment)
    try:
        leg.take_over(rebuild=rebuild)
        leg.append_among_kills(kill_pipeline=kill_pipeline)
        leg.leave(ending)
    finally:
        leg.stack.stop()
    if ending is Ending.HANDED_BACK:
        run_program("tidemark.cli", "store", "hand-back", str(this.root), environment=environment)
    assert (this.root / "abort").exists() == (ending in (Ending.LAGGING, Ending.KILLED))
    COUNTS["legs of Tidemark"] += 1
    check_nothing_foreign(this.root)


def run_program(*arguments: str, environment: dict[str, str]) -> None:
    """Run `python -m …`, which must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


class _Leg:
    def __init__(self, this: Round, environment: dict[str, str]) -> None:
        self._this = this
        self._environment = environment
        self.stack = LocalStack(this.root, environment=environment, services=(WRITER,))

    # -- taking over -------------------------------------------------------------------------------------------------

    def take_over(self, *, rebuild: bool) -> None:
        """Start writer and pipeline, in either order; the result must equal the broker's answers."""
        if rebuild:
            drop_derived(self._this.root)
        if self._this.draw.random() < 0.5:
            self.stack.start()
            self._index_once()
        else:
            self._index_once()
            self.stack.start()
        assert read_ledger(StorePaths(self._this.root).indexer) == []
        if self._this.theirs is not None:
            self._check_files()
            self._check_answers()

    def _index_once(self) -> None:
        environment = {**self._environment, "TIDEMARK_STORE_ROOT": str(self._this.root)}
        run_program("services.indexer", "pipeline", "--once", environment=environment)

    def _check_files(self) -> None:
        theirs = self._this.theirs
        assert theirs is not None
        ours = queue_units(self._this.root, below=theirs.end)
        assert ours.keys() == theirs.units.keys()
        for name, units in theirs.units.items():
            assert ours[name] == units, f"{name} differs from the broker's"
        COUNTS["queue files equal to the broker's"] += len(ours)

    @contextlib.contextmanager
    def _asked(self) -> Iterator[RestSide]:
        sizes = self._this.sizes
        with serve_query(self._this.root, index_slots=sizes.index_slots, index_entries=sizes.index_entries) as http:
            yield RestSide(http)

    def _check_answers(self) -> None:
        theirs = self._this.theirs
        assert theirs is not None
        with self._asked() as side:
            reading = self._this.read(side)
            answers = ask(side, theirs.questions)
        for queue, messages in theirs.reading.items():
            check_alike(queue, reading[queue], messages)
            assert len(reading[queue]) == len(messages) or queue[0] in UNSETTLED, queue
        check_keys(theirs.questions, answers, reading)
        if theirs.is_recovered:  # a broker may lose keys when it is killed; Tidemark has found all of them
            theirs.answers = theirs.answers._replace(keys=answers.keys)
        check_equal(theirs.questions, answers, theirs.answers)

    # -- appending ---------------------------------------------------------------------------------------------------

    def append_among_kills(self, *, kill_pipeline: bool) -> None:
        """Every send is acknowledged although the writer is killed meanwhile, and readable although the pipeline is."""
        load = self._load = TidemarkLoad(self._this.history, self._this.messages, self.stack.writer_address)
        load.create_topics()
        if kill_pipeline:
            self._kill_pipeline_at_work(load)
        load.append(_SENDS // 2)
        self.stack.services[WRITER].kill()
        COUNTS["kills of the writer"] += 1
        self.stack.start_service(WRITER)
        load.append(_SENDS // 2)
        load.finish()
        self._index_once()
        with self._asked() as side:
            self._this.ours = self._this.read(side)

    def _kill_pipeline_at_work(self, load: TidemarkLoad) -> None:
        before = watermark(self._this.root)
        self.stack.start_service(PIPELINE)
        deadline = time.monotonic() + _TIMEOUT_S
        while watermark(self._this.root) == before:
            self.stack.check()
            assert time.monotonic() < deadline, "the pipeline makes no progress"
            load.append(1)
            time.sleep(0.05)
        load.append(20)
        self.stack.services.pop(PIPELINE).kill()
        COUNTS["kills of the pipeline"] += 1

    # -- leaving -----------------------------------------------------------------------------------------------------

    def leave(self, ending: Ending) -> None:
        """Leave as *ending* states; hand-back runs after all has stopped."""
        if ending in (Ending.LAGGING, Ending.HANDED_BACK):
            self._load.append(_SENDS // 2)
            self._load.finish()
        self._load.close()
        if ending is Ending.KILLED:
            self._kill_writer_at_work()
        assert set(self.stack.stop().values()) <= {0}

    def _kill_writer_at_work(self) -> None:
        load = TidemarkLoad(
            self._this.history, self._this.messages, self.stack.writer_address, timeout_s=_SHORT_TIMEOUT_S
        )
        load.append(_SENDS // 2)
        time.sleep(self._this.draw.uniform(0, 0.2))
        self.stack.services.pop(WRITER).kill()
        COUNTS["kills of the writer"] += 1
        load.abandon()


def watermark(root: Path) -> int:
    """Return the pipeline's watermark."""
    marks = Marks.open_read_only(StorePaths(root).marks)
    try:
        return marks.watermark()
    finally:
        marks.close()


def check_directory(this: Round) -> None:
    """Check that `store check` finds nothing, and that a rebuild equals the existing queue files of both sides."""
    sizes = this.sizes
    slots = str(sizes.index_slots)
    run_program("tidemark.cli", "store", "check", str(this.root), "--index-slots", slots, environment={})
    copy = without_derived(this.root, this.folder / "rebuilt")
    plan = plan_of(
        copy,
        consume_queue_file_size_bytes=sizes.consume_queue,
        batch_consume_queue_file_size_bytes=sizes.batch_consume_queue,
        index_slots=sizes.index_slots,
        index_entries=sizes.index_entries,
    )
    build(plan)
    assert queue_files(copy) == queue_files(this.root)
