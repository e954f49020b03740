"""Next queue offsets from queue files, for stores whose log alone does not determine them.

Files of a wrong size or name are ignored: they are derived from the log, and the pipeline builds them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tidemark.format import batch_consume_queue, consume_queue
from tidemark.index.check.seen_files import SeenFiles, common_size
from tidemark.index.queue_end import find_batch_end, find_simple_end
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.paths import StorePaths

QueueKey = tuple[str, int]  # topic, queue id


def queue_ends(paths: StorePaths, *, below: int) -> Iterator[tuple[QueueKey, int]]:
    """Yield each queue's next offset, from its units that point at records below physical offset *below*."""
    for key, files in _queues(paths.consume_queue):
        yield key, find_simple_end(files, below) // consume_queue.UNIT_SIZE
        files.close()
    for key, files in _queues(paths.batch_consume_queue):
        yield key, _batch_end(files, below)
        files.close()


def _queues(root: Path) -> Iterator[tuple[QueueKey, MappedFileQueue]]:
    for folder in sorted(root.glob("*/*")):
        size = common_size(folder) if folder.is_dir() and folder.name.isdigit() else None
        if size is not None:
            yield (folder.parent.name, int(folder.name)), SeenFiles(folder, size)


def _batch_end(files: MappedFileQueue, below: int) -> int:
    end = find_batch_end(files, below)
    if end == files.min_offset:
        return 0
    size = batch_consume_queue.UNIT_SIZE
    (last,) = batch_consume_queue.decode_units(files.read(end - size, size))
    return int(last["base_offset"]) + int(last["batch_size"])
