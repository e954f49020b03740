"""Rebuild: a broker without queue files and key index builds them again from the log before it serves."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from benchmarks.peers.figures import Figure
from benchmarks.peers.fill import RECORD_OVERHEAD, fill, require_dispatched, require_indexed
from benchmarks.peers.peer import Flush
from benchmarks.peers.rocketmq import RocketMQ

TOPIC = "rebuild"
QUEUES = 4
LOG_BYTES = 6_000_000_000
BATCH, BODY_BYTES = 100, 1024
_DERIVED = ("consumequeue", "batchconsumequeue", "index")
_CHECKPOINT = "checkpoint"  # stores how far they were built
_RECOVERED = re.compile(r"recoverCommitLog: (\d+) ms")


def rebuild(key: str, folder: Path, scale: float) -> list[Figure]:
    """Return MB of log per second by the broker's own clock, which excludes the start of its JVM."""
    messages = int(LOG_BYTES * scale / (BODY_BYTES + RECORD_OVERHEAD))
    with RocketMQ(folder, Flush.ASYNC) as peer:
        peer.create_topic(TOPIC, QUEUES)
        filled = fill(peer, TOPIC, messages, batch=BATCH, body=BODY_BYTES)
        log_bytes = require_dispatched(peer, filled)
        peer.stop()
        for name in _DERIVED:
            shutil.rmtree(peer.store / name, ignore_errors=True)
        (peer.store / _CHECKPOINT).unlink()
        peer.log.unlink()
        peer.start()
        seconds = recovery_seconds(peer.log.read_text())
        require_dispatched(peer, filled)
        require_indexed(peer, filled)
    return [Figure(key, log_bytes / 1e6 / seconds, "MB/s", f"{log_bytes / 1e6:,.0f} MB in {seconds:.1f} s")]


def recovery_seconds(log: str) -> float:
    """Return the seconds of the walk through the CommitLog that builds the queues. Raises ValueError without it."""
    found = _RECOVERED.search(log)
    if found is None:
        raise ValueError(
            "the broker's log does not say how long the recovery took: it has no line `recoverCommitLog: … ms`"
        )
    return int(found[1]) / 1000
