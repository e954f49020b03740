"""What is asked for and of what: a workload, and the machine that one pair of writer and indexer runs on."""

from __future__ import annotations

from dataclasses import dataclass

DAY_S = 86_400.0


@dataclass(frozen=True)
class Workload:
    """Messages of one day, over all pairs.

    peak          the busiest minute's rate over the mean
    batch         messages of a producer's batch
    keys          in KEYS of each message, beside its UNIQ_KEY
    queues        of all topics together
    batch_queues  topics are BatchCQ: a batch is one record, and only the batch itself is in the key index
    readers       how often each message is pulled, as records, close behind the log's end
    json_readers  how often as JSON, besides
    reader_lag_s  how far behind the slowest of these may be without reading from the disk
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
        """In the busiest minute."""
        return self.messages_a_day / DAY_S * self.peak


@dataclass(frozen=True)
class Machine:
    """Of one pair. Speeds of cores and disk are constants; this is how much there is.

    files   that a process may have open (RLIMIT_NOFILE)
    maps    that a process may have mapped (vm.max_map_count)
    most    share of anything that the busiest minute may take: what is left keeps the lag short
    """

    cores: int
    memory_bytes: float
    disk_bytes: float
    files: int = 1 << 20
    maps: int = 65_530
    most: float = 0.6


SERVER = Machine(cores=16, memory_bytes=64e9, disk_bytes=8e12)
