"""The data folders' files as found on disk: foreign files are reported, not refused."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from pathlib import Path

from tidemark.format.topic_name import is_topic_name
from tidemark.index.check.findings import Note, Reason, Report, relative
from tidemark.index.key_index import is_index_name
from tidemark.store.mapped_file_queue import MappedFileQueue, is_file_name
from tidemark.store.paths import StorePaths


class SeenFiles(MappedFileQueue):
    """The valid data files of a folder, for reads. Other files are ignored."""

    def refresh(self) -> None:
        """List the folder again."""
        sizes = _sizes(self.folder)
        self._starts = [
            int(name)
            for name in sorted(sizes)
            if is_file_name(name) and sizes[name] == self.file_size and int(name) % self.file_size == 0
        ]

    def read_all(self, offset: int, length: int) -> bytes:
        """Return *length* bytes from *offset*, across files; zero bytes where no file exists."""
        pieces: list[bytes] = []
        while length > 0:
            room = min(length, self.file_start(offset) + self.file_size - offset)
            pieces.append(self.read(offset, room).ljust(room, b"\0"))
            offset += room
            length -= room
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def data_stretches(self, offset: int) -> Iterator[tuple[int, int]]:
        """Yield (start, end) of the file parts at or after *offset* that are not holes."""
        for start in self.starts:
            at = max(offset, start) - start
            while at < self.file_size:
                found = _next_data(self.opened(start).descriptor, at, self.file_size)
                if found is None:
                    break
                yield start + found[0], start + found[1]
                at = found[1]


def _next_data(descriptor: int, at: int, size: int) -> tuple[int, int] | None:
    try:
        first = os.lseek(descriptor, at, os.SEEK_DATA)
        return first, min(os.lseek(descriptor, first, os.SEEK_HOLE), size)
    except OSError:  # only a hole follows
        return None


def common_size(folder: Path) -> int | None:
    """Return the most common size of the folder's data files; None if it has none."""
    sizes = [size for name, size in _sizes(folder).items() if is_file_name(name) and size]
    return statistics.mode(sizes) if sizes else None


def _sizes(folder: Path) -> dict[str, int]:
    """Return the sizes of the files of *folder* by name."""
    sizes: dict[str, int] = {}
    try:
        for entry in os.scandir(folder):
            if entry.is_file():
                sizes[entry.name] = entry.stat().st_size
    except FileNotFoundError:  # deleted meanwhile
        pass
    return sizes


def queue_folders(root: Path) -> Iterator[tuple[str, int, Path]]:
    """Yield (topic, queue id, folder) of every queue below consumequeue/ or batchconsumequeue/."""
    for folder in sorted(root.glob("*/*")):
        if is_topic_name(folder.parent.name) and _is_queue_id(folder.name) and folder.is_dir():
            yield folder.parent.name, int(folder.name), folder


def _is_queue_id(name: str) -> bool:
    return name.isascii() and name.isdigit() and str(int(name)) == name


def check_folders(paths: StorePaths, report: Report) -> None:
    """Report foreign files in RocketMQ's data folders and files of a wrong size."""
    _check_data_folder(paths.commit_log, paths, report)
    for root in (paths.consume_queue, paths.batch_consume_queue):
        for topic in sorted(root.iterdir()) if root.is_dir() else []:
            if not (topic.is_dir() and is_topic_name(topic.name)):
                _report_foreign(topic, paths, report)
                continue
            for queue in sorted(topic.iterdir()):
                if queue.is_dir() and _is_queue_id(queue.name):
                    _check_data_folder(queue, paths, report)
                else:
                    _report_foreign(queue, paths, report)
    for path in sorted(paths.index.iterdir()) if paths.index.is_dir() else []:
        if not (path.is_file() and is_index_name(path.name)):
            _report_foreign(path, paths, report)


def _check_data_folder(folder: Path, paths: StorePaths, report: Report) -> None:
    if not folder.is_dir():
        return
    size = common_size(folder)
    names = sorted(entry.name for entry in os.scandir(folder))
    sizes = _sizes(folder)
    for name in names:
        path = folder / name
        if not is_file_name(name) or name not in sizes:
            if path.exists():
                _report_foreign(path, paths, report)
        elif sizes[name] == 0 and name == names[-1]:
            report.note(
                Note.EMPTY_FILE, "an empty last file: its creation was interrupted", path=relative(path, paths.root)
            )
        elif size is not None and (sizes[name] != size or int(name) % size):
            what = (
                f"has {sizes[name]} bytes, but the others have {size}"
                if sizes[name] != size
                else f"is named by an offset that is not a multiple of its size, {size}"
            )
            report.find(Reason.FILE_SIZE, f"the data file {what}", path=relative(path, paths.root))


def _report_foreign(path: Path, paths: StorePaths, report: Report) -> None:
    text = f"a foreign {'folder' if path.is_dir() else 'file'} in a data folder"
    report.find(Reason.FOREIGN_FILE, text, path=relative(path, paths.root))
