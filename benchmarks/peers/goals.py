"""The goals of Tidemark: for each row, the figure and product of the comparison, and the required factor."""

from __future__ import annotations

import enum
from typing import NamedTuple, Protocol

from benchmarks.peers.python.systems import AIOKAFKA, BARE_PYTHON, BEST, CONFLUENT, NATS
from benchmarks.peers.toolchain import KAFKA, ROCKETMQ


class Better(enum.Enum):
    """The direction in which a figure is better."""

    HIGHER = "≥"
    LOWER = "≤"


class Named(Protocol):
    """A product or a client that is compared."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...


class Limit(NamedTuple):
    """A limit of Tidemark's own figure, whatever the others reach."""

    value: float
    unit: str


class Goal(NamedTuple):
    """A comparison of a row. key: of Tidemark's row; peer_key: of the other products' row.

    product, factor: Tidemark's figure should be ≥ (or ≤) factor × the product's figure; factor None: no such goal.
    With the product BEST, it is the figure of the best other client of the pair.
    limit: with factor None, Tidemark's figure should be ≥ (or ≤) this value.
    """

    key: str
    peer_key: str
    product: Named
    better: Better
    factor: float | None
    limit: Limit | None = None

    @property
    def text(self) -> str:
        """Return the goal as text for a table; "" without a goal."""
        if self.limit is not None:
            return f"{self.better.value} {self.limit.value:g} {self.limit.unit}"
        if self.factor is None:
            return ""
        times = "" if self.factor == 1 else f"{self.factor:g} × "
        return f"{self.better.value} {times}{self.product.title}"


def _at_least(factor: float | None, product: Named, key: str, peer_key: str = "") -> Goal:
    return Goal(key, peer_key or key, product, Better.HIGHER, factor)


def _at_most(factor: float | None, product: Named, key: str) -> Goal:
    return Goal(key, key, product, Better.LOWER, factor)


def _cpu(key: str, most: float | None = None) -> Goal:
    """Return the comparison of the client's processor time for each message of row *key*."""
    limit = None if most is None else Limit(most, "µs")
    return Goal(f"{key}_cpu", f"{key}_cpu", BEST, Better.LOWER, None, limit)


GOALS = (
    _at_least(3, ROCKETMQ, "append_sync_100x1024"),
    _at_least(2, ROCKETMQ, "append_async_100x1024"),
    _at_least(3, ROCKETMQ, "append_sync_1000x100"),
    _at_least(3, ROCKETMQ, "send_table_sync_1000x100", "append_sync_1000x100"),
    _at_least(2, ROCKETMQ, "append_sync_1000x100_batch_queue"),
    _at_least(2, ROCKETMQ, "replication_100x1024_1", "append_sync_master_100x1024"),
    _at_least(1.5, KAFKA, "replication_100x1024_1", "append_acks_all_100x1024"),
    _at_least(2, ROCKETMQ, "replication_1000x100_1", "append_sync_master_1000x100"),
    _at_least(1.5, KAFKA, "replication_1000x100_1", "append_acks_all_1000x100"),
    _at_least(1.5, ROCKETMQ, "send_single_sync"),
    _at_least(1.5, ROCKETMQ, "send_single_async"),
    _at_least(1.5, ROCKETMQ, "send_single_java_sync", "send_single_sync"),
    _at_least(1.5, ROCKETMQ, "send_single_java_async", "send_single_async"),
    _at_least(None, ROCKETMQ, "send_single_bare", "send_single_async"),
    _at_least(None, ROCKETMQ, "accumulated_send", "send_single_sync"),
    _at_least(10, ROCKETMQ, "accumulated_send_async", "send_single_sync"),
    _at_most(1, ROCKETMQ, "visible_sync_p50"),
    _at_most(1, ROCKETMQ, "visible_sync_p99"),
    _at_most(1, ROCKETMQ, "visible_sync_p999"),
    _at_most(1, ROCKETMQ, "visible_async_p50"),
    _at_most(1, ROCKETMQ, "visible_async_p99"),
    _at_most(1, ROCKETMQ, "visible_async_p999"),
    _at_least(4, KAFKA, "pull_raw_1024", "pull_1024"),
    _at_least(None, KAFKA, "pull_raw_checked_1024", "pull_1024"),
    _at_least(2, KAFKA, "pull_arrow_1024", "pull_1024"),
    _at_least(2, KAFKA, "pull_arrow_by_client_1024", "pull_1024"),
    _at_least(None, KAFKA, "pull_ceiling", "pull_1024"),
    _at_least(None, KAFKA, "pull_ceiling_read", "pull_1024"),
    _at_least(1, ROCKETMQ, "pull_json_1024", "pull_1024"),
    _at_least(None, ROCKETMQ, "pull_json_1024", "pull_1024_large"),
    _at_least(2, ROCKETMQ, "pull_arrow_inner_100", "pull_inner_100"),
    _at_least(6, ROCKETMQ, "rebuild"),
    _at_most(1, ROCKETMQ, "key_lookup_warm_p50"),
    _at_most(1, ROCKETMQ, "key_lookup_warm_p99"),
    _at_most(1, ROCKETMQ, "key_lookup_cold_p99"),
    _at_most(1, ROCKETMQ, "id_lookup_p99"),
    _at_most(1, ROCKETMQ, "start_clean_s"),
    _at_most(1, ROCKETMQ, "start_killed_s"),
    _at_least(1, ROCKETMQ, "queues_10000_append"),
    _at_least(1, ROCKETMQ, "queues_10000_pull"),
    _at_most(1, ROCKETMQ, "queues_10000_start_s"),
    _at_least(2, KAFKA, "spark_read"),
    _at_least(2, KAFKA, "spark_read_columns", "spark_read"),
    _at_least(None, KAFKA, "spark_read_service", "spark_read"),
    _at_most(1, KAFKA, "spark_trigger_p50"),
    _at_least(1, BEST, "python_send_sync"),
    _at_least(None, BARE_PYTHON, "python_send_sync"),
    _cpu("python_send_sync", 120),
    _at_least(1, NATS, "python_send_async"),
    _at_least(None, BEST, "python_send_async"),
    _at_least(None, BARE_PYTHON, "python_send_async"),
    _cpu("python_send_async", 120),
    _at_least(1.5, BEST, "python_batching_sync"),
    _at_least(None, BARE_PYTHON, "python_batching_sync"),
    _cpu("python_batching_sync"),
    _at_least(1.5, BEST, "python_batching_async"),
    _at_least(None, BARE_PYTHON, "python_batching_async"),
    _cpu("python_batching_async"),
    _at_least(1, AIOKAFKA, "python_consume"),
    _at_least(None, BEST, "python_consume"),
    _cpu("python_consume", 5),
    _at_least(1, CONFLUENT, "python_consume_table"),
    _cpu("python_consume_table"),
    _at_most(1, BEST, "python_latency_200_p50"),
    _at_most(1, BEST, "python_latency_200_p99"),
    _at_most(None, BARE_PYTHON, "python_latency_200_p50"),
    _cpu("python_latency_200"),
    _at_most(1, BEST, "python_latency_5000_p50"),
    _at_most(1, BEST, "python_latency_5000_p99"),
    _at_most(None, BARE_PYTHON, "python_latency_5000_p50"),
    _cpu("python_latency_5000"),
)
