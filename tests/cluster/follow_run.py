"""FollowRun: all services of a store, the pipeline's tasks on a cluster, under load and watched."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.cluster.load import SENDERS, Load
from tests.cluster.onlooker import Onlooker
from tests.cluster.pauses import Pauses
from tests.cluster.standalone import Standalone
from tests.pipeline_runs import index_contents, queue_files
from tidemark.local.local_stack import PIPELINE, LocalStack

SHARDS = 2
SETTINGS = {
    "TIDEMARK_SHARDS": str(SHARDS),
    "TIDEMARK_EPOCH_MS": "2000",
    "TIDEMARK_WARM_UP_MS": "0",  # a holder of a shard keeps it for a while
    "TIDEMARK_DURABLE_INTERVAL_MS": "200",
    "TIDEMARK_LEASE_MS": "2000",
    "TIDEMARK_SPARK_EXECUTOR_TIMEOUT_MS": "6000",
    "TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES": str(1 << 20),
    "TIDEMARK_CONSUME_QUEUE_FILE_SIZE_BYTES": "40000",
    "TIDEMARK_INDEX_SLOTS": "2000",
    "TIDEMARK_INDEX_ENTRIES": "8000",
}
RECOVERY_S = 240.0  # a limit for an event that may never come, on a busy machine
_POLL_S = 0.1


class FollowRun:
    """`with` starts everything and waits until an epoch is over; `finish` judges."""

    def __init__(self, folder: Path, cluster: Standalone, environment: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self.cluster = cluster
        settings = {**SETTINGS, **cluster.environment, **(environment or {})}
        self.stack = LocalStack(folder / "store", environment=settings)
        self.load = Load(self.stack.writer_address)
        self.onlooker = Onlooker(self.stack.query_url, self.load)
        self.pauses: Pauses | None = None

    def __enter__(self) -> FollowRun:
        self.stack.start()
        self.load.start()
        self.onlooker.start()
        self.pauses = Pauses(self.stack.data)  # from before Spark's start: until then the understudy builds
        try:
            self.wait_for_epoch()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.load.stop()
        if self.pauses is not None:
            self.pauses.stop()
        try:
            self.onlooker.stop()
        finally:
            self.onlooker.close()
            self.stack.stop()

    def start_pipeline(self) -> None:
        """Start the pipeline again after a kill, with a new log."""
        self.stack.start_service(PIPELINE)

    def epochs(self) -> list[dict[str, Any]]:
        """Return the pipeline's log events of Spark's epochs since its last start."""
        found = events(self.stack.logs / f"{PIPELINE}.log", "epoch_finished")
        return [event for event in found if event["engine"] == "spark"]

    def wait_for_epoch(self) -> dict[str, Any]:
        """Return the next epoch of Spark that ends."""
        known, deadline = len(self.epochs()), time.monotonic() + RECOVERY_S
        while len(epochs := self.epochs()) == known:
            self.stack.check()
            assert time.monotonic() < deadline, self.stack.services[PIPELINE].last_lines()
            time.sleep(_POLL_S)
        return epochs[-1]

    def longest_pause_s(self) -> float:
        """Return the longest time from committed to visible since the last call or the start."""
        assert self.pauses is not None, "it runs"
        longest_s = self.pauses.longest_s
        self.pauses.begin()
        return longest_s

    def wait_for_append(self) -> None:
        """Wait until a batch is committed that was not yet committed at the call."""
        answered, deadline = len(self.load.acknowledged), time.monotonic() + RECOVERY_S
        while len(self.load.acknowledged) <= answered + SENDERS:  # some may have been in flight
            assert time.monotonic() < deadline, "no append was acknowledged"
            time.sleep(_POLL_S)

    def recover(self) -> float:
        """Return the seconds until everything that is committed now is visible; appends must continue meanwhile."""
        answered = len(self.load.acknowledged)
        seconds = self.onlooker.seconds_until_visible(RECOVERY_S)
        time.sleep(1)
        assert len(self.load.acknowledged) > answered
        assert self.load.failures == []
        return seconds

    def finish(self, *, may_go_back: bool = False) -> None:
        """Require that nothing is lost, repeated or wrong, and that the bytes are those of one rebuild.

        may_go_back  whether the watermark may have gone back briefly
        """
        self.load.stop()
        self.onlooker.seconds_until_visible(RECOVERY_S)
        self.onlooker.stop()
        self.onlooker.require_everything()
        assert may_go_back or self.onlooker.went_back == 0
        assert self.stack.stop()[PIPELINE] == 0
        store = self.stack.data
        checked = tidemark("store", "check", str(store))
        assert checked.returncode == 0, checked.stdout + checked.stderr
        assert_equal_to_rebuild(store, self._folder / "rebuilt")


def events(log: Path, name: str) -> list[dict[str, Any]]:
    """Return a service's events of this name from its log."""
    lines = log.read_text(errors="replace").splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}") and name in line]
    return [event for event in found if event["event"] == name]


def tidemark(*arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run(
        command(*arguments), env=environment, capture_output=True, text=True, timeout=280, check=False
    )


def command(*arguments: str) -> list[str]:
    """Return the command line."""
    return [sys.executable, "-m", "tidemark.cli", *arguments]


def assert_equal_to_rebuild(store: Path, copy: Path) -> None:
    """Require that queue files and index of *store* equal those of a `tidemark store rebuild` without a cluster."""
    shutil.copytree(store, copy)
    done = tidemark("store", "rebuild", str(copy))
    assert done.returncode == 0, done.stdout + done.stderr
    assert queue_files(store) == queue_files(copy)
    assert index_contents(store) == index_contents(copy)
