"""The understudy: threads of this process that follow the log while no task of Spark does.

They run the same epochs as Spark's tasks, under the same locks, so a shard has one builder at any time. The understudy
builds from the start of the service until Spark's first epoch, takes over when Spark's tasks are lost, and gives the
shards back as soon as a task of Spark waits for them. Without Spark (TIDEMARK_PIPELINE=plain) it builds alone.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

import structlog

from tidemark.store.storage import Storage

from .epoch import run_share
from .epoch_reports import EpochListener
from .plan import EpochPlan
from .shards.shard_builder import executor_name
from .shards.understudy_hand_over import UNDERSTUDY, UnderstudyHandOver

_DRAIN_PAUSE_S = 0.1

log = structlog.get_logger()


class Understudy:
    """A thread for each task that Spark would run.

    yields   False if no Spark runs
    reports  receives the rows of progress of each epoch of the understudy
    """

    def __init__(self, plan: EpochPlan, storage: Storage, reports: EpochListener, *, yields: bool) -> None:
        self._plan = plan
        self._storage = storage
        self._reports = reports
        self._yields = yields
        self._stopping = threading.Event()
        self._failure: Exception | None = None
        self._builds = [False] * len(plan.shares)
        self._threads = [
            threading.Thread(target=self._run, args=(number, shards), name=f"understudy-{number}", daemon=True)
            for number, shards in enumerate(plan.shares)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def raise_failure(self) -> None:
        """Raise the exception of the first thread that failed."""
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Release the shards. Everything that was built is durable on return."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int, shards: Sequence[int]) -> None:
        try:
            while not self._stopping.is_set():
                self._run_epoch(number, shards)
                if not self._plan.epoch_ms:  # it has drained and need not look again at once
                    self._stopping.wait(_DRAIN_PAUSE_S)
        except Exception as error:
            self._failure = self._failure or error
        finally:
            self._builds[number] = False

    def _run_epoch(self, number: int, shards: Sequence[int]) -> None:
        hand_over = UnderstudyHandOver(
            self._plan, shards, self._stopping, yields=self._yields, on_change=partial(self._change, number, shards)
        )
        rows = run_share(self._plan, shards, follower=UNDERSTUDY, storage=self._storage, hand_over=hand_over)
        if not rows[0].stopped_s:  # the service stopped before the shards were free
            return
        for row in rows:
            row.executor = executor_name(os.getpid())
        self._reports.epoch_finished([asdict(row) for row in rows])

    def _change(self, number: int, shards: Sequence[int], builds: bool) -> None:
        if builds != self._builds[number]:
            self._builds[number] = builds
            log.info("understudy_took_over" if builds else "understudy_gave_back", shards=list(shards))
