"""The watchdog over Spark's JVM, with another process in its place."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from services.indexer.pipeline.spark.jvm_watchdog import JvmWatchdog
from tests.waiting import until


@pytest.fixture
def jvm() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def test_a_lost_jvm_ends_the_process_with_status_1(jvm: subprocess.Popen[bytes]) -> None:
    ended: list[int] = []
    JvmWatchdog(lambda: jvm, threading.Event(), end=ended.append, grace_s=0.01).start()
    jvm.kill()
    until(lambda: ended == [1])


def test_a_jvm_that_ends_with_the_session_does_not_end_the_process(jvm: subprocess.Popen[bytes]) -> None:
    ended: list[int] = []
    watchdog = JvmWatchdog(lambda: jvm, threading.Event(), end=ended.append, grace_s=0.01)
    watchdog.start()
    watchdog.close()
    jvm.kill()
    jvm.wait()
    watchdog._thread.join(10)
    assert not watchdog._thread.is_alive()
    assert ended == []


def test_a_jvm_that_is_signalled_together_with_the_pipeline_leaves_time_to_stop(jvm: subprocess.Popen[bytes]) -> None:
    ended: list[int] = []
    stopping = threading.Event()
    stopping.set()
    watchdog = JvmWatchdog(lambda: jvm, stopping, end=ended.append, grace_s=0.01)
    jvm.kill()
    jvm.wait()
    watchdog.start()
    watchdog._thread.join(1)
    assert ended == []
    watchdog.close()
