"""The workloads of each product, and their keys."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers.figures import Figure
from benchmarks.peers.goals import Named
from benchmarks.peers.kafka import Kafka
from benchmarks.peers.peer import Flush
from benchmarks.peers.python.rows import THEIRS
from benchmarks.peers.replicated import ReplicatedKafka, ReplicatedRocketMQ
from benchmarks.peers.rocketmq import RocketMQ
from benchmarks.peers.toolchain import KAFKA, ROCKETMQ, Product
from benchmarks.peers.work import lookup, queues, spark, start
from benchmarks.peers.work.append import append_kafka, append_rocketmq, send
from benchmarks.peers.work.pull import pull_kafka, pull_rocketmq
from benchmarks.peers.work.rebuild import rebuild
from benchmarks.peers.work.visible import PERCENTILES, visible

Run = Callable[[Path, float], list[Figure]]


class Workload(NamedTuple):
    """One run of a product. run: (a folder of its own, scale) → a figure for each of *keys*."""

    product: Named
    keys: tuple[str, ...]
    run: Run


def _one(product: Product, key: str, run: Callable[..., list[Figure]], **settings: object) -> Workload:
    return Workload(product, (key,), partial(run, key, **settings))


def _send(peer_class: type[RocketMQ | Kafka], key: str, flush: Flush) -> Workload:
    return Workload(peer_class.product, (key,), partial(send, peer_class, key, flush=flush))


def _visible(peer_class: type[RocketMQ | Kafka], key: str, flush: Flush) -> Workload:
    keys = tuple(f"{key}_{percentile}" for percentile in PERCENTILES)
    return Workload(peer_class.product, keys, partial(visible, peer_class, key, flush=flush))


def _replicated(shape: str, size: dict[str, int]) -> tuple[Workload, Workload]:
    """Return the appends of RocketMQ and Kafka with a replica."""
    settings: dict[str, object] = {"flush": Flush.SYNC, **size}
    return (
        _one(ROCKETMQ, f"append_sync_master_{shape}", append_rocketmq, peer_class=ReplicatedRocketMQ, **settings),
        _one(KAFKA, f"append_acks_all_{shape}", append_kafka, peer_class=ReplicatedKafka, **settings),
    )


SMALL = {"batch": 1000, "body": 100}
LARGE = {"batch": 100, "body": 1024}
WORKLOADS = (
    _one(ROCKETMQ, "append_sync_100x1024", append_rocketmq, flush=Flush.SYNC, **LARGE),
    _one(KAFKA, "append_sync_100x1024", append_kafka, flush=Flush.SYNC, **LARGE),
    _one(ROCKETMQ, "append_async_100x1024", append_rocketmq, flush=Flush.ASYNC, **LARGE),
    _one(KAFKA, "append_async_100x1024", append_kafka, flush=Flush.ASYNC, **LARGE),
    _one(ROCKETMQ, "append_sync_1000x100", append_rocketmq, flush=Flush.SYNC, **SMALL),
    _one(KAFKA, "append_sync_1000x100", append_kafka, flush=Flush.SYNC, **SMALL),
    _one(ROCKETMQ, "append_sync_1000x100_batch_queue", append_rocketmq, flush=Flush.SYNC, batch_queue=True, **SMALL),
    *_replicated("100x1024", LARGE),
    *_replicated("1000x100", SMALL),
    _send(RocketMQ, "send_single_sync", Flush.SYNC),
    _send(Kafka, "send_single_sync", Flush.SYNC),
    _send(RocketMQ, "send_single_async", Flush.ASYNC),
    _send(Kafka, "send_single_async", Flush.ASYNC),
    _visible(RocketMQ, "visible_sync", Flush.SYNC),
    _visible(Kafka, "visible_sync", Flush.SYNC),
    _visible(RocketMQ, "visible_async", Flush.ASYNC),
    _visible(Kafka, "visible_async", Flush.ASYNC),
    _one(ROCKETMQ, "pull_1024", pull_rocketmq, **LARGE),
    _one(KAFKA, "pull_1024", pull_kafka, **LARGE),
    _one(ROCKETMQ, "pull_1024_large", pull_rocketmq, large=True, **LARGE),
    _one(ROCKETMQ, "pull_inner_100", pull_rocketmq, batch_queue=True, **SMALL),
    _one(ROCKETMQ, "rebuild", rebuild),
    Workload(ROCKETMQ, lookup.KEYS, lookup.lookup),
    Workload(ROCKETMQ, start.KEYS, start.start_rocketmq),
    Workload(KAFKA, start.KEYS, start.start_kafka),
    Workload(ROCKETMQ, queues.KEYS, queues.queues),
    _one(KAFKA, "spark_read", spark.spark_read),
    _one(KAFKA, "spark_trigger_p50", spark.spark_trigger),
    *(Workload(system, keys, run) for system, keys, run in THEIRS),
)
