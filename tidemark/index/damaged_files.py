"""Finds damage of derived files without reading the log: by sizes, names and headers."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tidemark.format import index_file, index_layout
from tidemark.format.topic_name import is_topic_name
from tidemark.index.key_index import index_files
from tidemark.store.mapped_file_queue import is_file_name, list_folder
from tidemark.store.paths import StorePaths

Queue = tuple[str, int]


class FileSizes(NamedTuple):
    """Sizes of whole files in bytes."""

    queue: int
    batch_queue: int
    extension: int
    index_file: int


def damaged_queues(paths: StorePaths, sizes: FileSizes) -> set[Queue]:
    """Return the queues that have a file of a wrong size, or a gap between two files.

    A file whose size differs from the expected one is damaged only if another file has the expected size, or if the
    file does not end with a whole unit. Otherwise all files contradict a setting, which the caller refuses.
    """
    found: set[Queue] = set()
    for root, size, unit in (
        (paths.consume_queue, sizes.queue, 20),
        (paths.batch_consume_queue, sizes.batch_queue, 46),
        (paths.consume_queue_ext, sizes.extension, 1),
    ):
        by_queue = {queue: _files(folder) for queue, folder in _queues(root)}
        counts = Counter(length for files in by_queue.values() for length in files.values())
        for queue, files in by_queue.items():
            if any(_is_wrong(length, size, unit, counts) for length in files.values()):
                found.add(queue)
            starts = sorted(files)
            if any(after - before != size for before, after in itertools.pairwise(starts)) and counts[size]:
                found.add(queue)
    return found


def first_damaged_index_file(paths: StorePaths, size: int) -> str | None:
    """Return the name of the oldest index file with a wrong size or an impossible header; None if there is none."""
    files = index_files(paths.index)
    counts = Counter(path.stat().st_size for path in files)
    for path in files:
        length = path.stat().st_size
        if length != size and (length == 0 or counts[size] or index_file.slots_of_size(length) is None):
            return path.name
        if length == size and not _is_header_possible(path, size):
            return path.name
    return None


def common_file_size(sizes: Iterator[int]) -> int | None:
    """Return the most common size; None without files."""
    counts = Counter(sizes)
    return counts.most_common(1)[0][0] if counts else None


def sizes_below(root: Path) -> Iterator[int]:
    """Yield the sizes of all nonempty data files of queues below *root*."""
    for _, folder in _queues(root):
        yield from (length for length in _files(folder).values() if length)


def _is_wrong(length: int, size: int, unit: int, counts: Counter[int]) -> bool:
    return length != size and (counts[size] > 0 or length % unit != 0 or length == 0)


def _is_header_possible(path: Path, size: int) -> bool:
    with path.open("rb") as file:
        header = index_file.decode_header(file.read(index_layout.HEADER_SIZE))
    most = size // index_layout.ENTRY_SIZE
    return header.index_count <= most and 0 <= header.begin_physical_offset <= header.end_physical_offset


def _queues(root: Path) -> Iterator[tuple[Queue, Path]]:
    for topic in list_folder(root):
        if topic.is_dir() and is_topic_name(topic.name):
            for queue in list_folder(Path(topic.path)):
                if queue.is_dir() and queue.name.isdigit() and str(int(queue.name)) == queue.name:
                    yield (topic.name, int(queue.name)), Path(queue.path)


def _files(folder: Path) -> dict[int, int]:
    """Return the length of each data file, keyed by its start."""
    return {int(entry.name): entry.stat().st_size for entry in list_folder(folder) if is_file_name(entry.name)}
