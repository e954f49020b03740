"""The sizes of a store's files, as settings of a broker and of Tidemark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FileSizes:
    """Bytes of a file of each kind; slots and entries of an index file."""

    commit_log: int = 1 << 20
    consume_queue: int = 20_000
    batch_consume_queue: int = 46_000
    index_slots: int = 500
    index_entries: int = 2_000

    def as_broker_settings(self) -> dict[str, int]:
        """Return lines of broker.conf."""
        return {
            "mappedFileSizeCommitLog": self.commit_log,
            "mappedFileSizeConsumeQueue": self.consume_queue,
            "mapperFileSizeBatchConsumeQueue": self.batch_consume_queue,
            "maxHashSlotNum": self.index_slots,
            "maxIndexNum": self.index_entries,
        }

    def as_environment(self) -> dict[str, str]:
        """Return TIDEMARK_ settings of writer, pipeline and query."""
        sizes = {
            "COMMIT_LOG_SEGMENT_SIZE_BYTES": self.commit_log,
            "CONSUME_QUEUE_FILE_SIZE_BYTES": self.consume_queue,
            "BATCH_CONSUME_QUEUE_FILE_SIZE_BYTES": self.batch_consume_queue,
            "INDEX_SLOTS": self.index_slots,
            "INDEX_ENTRIES": self.index_entries,
        }
        return {f"TIDEMARK_{name}": str(size) for name, size in sizes.items()}
