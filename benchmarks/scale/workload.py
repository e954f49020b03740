"""The input of the model: a workload, and the machine on which one pair of writer and indexer runs."""

from __future__ import annotations

from dataclasses import dataclass

DAY_S = 86_400.0


@dataclass(frozen=True)
class Workload:
    """A workload: the messages of one day, over all pairs.

    peak          ratio of the busiest minute's rate to the mean rate
    batch         messages in a producer's batch
    keys          number of keys in KEYS of each message, besides its UNIQ_KEY
    queues        number of queues of all topics together
    batch_queues  topics are BatchCQ: a batch is one record, and the key index has only the batch itself
    readers       how often each message is pulled as a record, close to the log's end
    json_readers  how often each message is also pulled as JSON
    reader_lag_s  maximum lag of the slowest reader without reads from the disk
    """

    messages_a_day: float
    body_bytes: int
    peak: float = 3.0
    batch: int = 1000
    keys: int = 1
    key_bytes: int = 16
    topic_bytes: int = 8
    queues: int = 256
    batch_queues: bool = False
    retention_days: float = 3.0
    readers: float = 2.0
    json_readers: float = 0.0
    reader_lag_s: float = 60.0

    @property
    def messages_a_second(self) -> float:
        """Messages per second in the busiest minute."""
        return self.messages_a_day / DAY_S * self.peak


@dataclass(frozen=True)
class Machine:
    """The machine of one pair: the amounts of its resources. The speeds of cores and disk are in Constants.

    files   number of files that a process may open (RLIMIT_NOFILE)
    maps    number of mappings that a process may have (vm.max_map_count)
    most    share of a resource that the busiest minute may use; the rest keeps the lag short
    """

    cores: int
    memory_bytes: float
    disk_bytes: float
    files: int = 1 << 20
    maps: int = 65_530
    most: float = 0.6


SERVER = Machine(cores=16, memory_bytes=64e9, disk_bytes=8e12)
