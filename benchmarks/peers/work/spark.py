"""Spark's own Kafka source with a real Kafka: the same jobs as for format("tidemark")."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers.figures import Figure
from benchmarks.peers.kafka import Kafka
from benchmarks.peers.peer import Flush
from benchmarks.peers.toolchain import SPARK_KAFKA, fetch_jars
from benchmarks.spark_run import MESSAGES, TRIGGER_MESSAGES, TRIGGERS, spark_run

TOPIC, QUEUES = "spark", 4
_BATCH, _BODY_BYTES = 100, 1024


def spark_read(key: str, folder: Path, scale: float) -> list[Figure]:
    """Return records per second."""
    answer = _run(folder, int(MESSAGES * scale), triggers=0)
    return [Figure(key, answer["messages"] / answer["seconds"], "msg/s")]


def spark_trigger(key: str, folder: Path, scale: float) -> list[Figure]:
    """Return the median milliseconds of a trigger."""
    triggers = max(TRIGGERS // 2, int(TRIGGERS * scale))
    answer = _run(folder, triggers * TRIGGER_MESSAGES, triggers=triggers)
    return [Figure(key, answer["trigger_p50_ms"], "ms")]


def _run(folder: Path, messages: int, *, triggers: int) -> dict[str, float]:
    jars = sorted(fetch_jars(SPARK_KAFKA).glob("*.jar"))
    with Kafka(folder, Flush.ASYNC) as peer:
        peer.create_topic(TOPIC, QUEUES)
        peer.load("Fill", topic=TOPIC, messages=messages, queues=QUEUES, batch=_BATCH, body=_BODY_BYTES)
        options = {"kafka.bootstrap.servers": peer.address, "subscribe": TOPIC, "startingOffsets": "earliest"}
        if triggers:
            options["maxOffsetsPerTrigger"] = str(TRIGGER_MESSAGES)
        return spark_run("kafka", options, jars=jars, triggers=triggers)
