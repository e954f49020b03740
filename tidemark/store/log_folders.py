"""The folders of the CommitLog: one, or several that form one address space (docs/format.md §1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SEPARATOR = ","  # of folders in a setting, as in a broker's storePathCommitLog


@dataclass(frozen=True)
class LogFolders:
    """The folders of one CommitLog.

    Writable folders are sorted by name; the order determines the folder of a new file. No new file is created in a
    read-only folder. The log's last file is filled up in whichever folder it is.
    """

    writable: tuple[Path, ...]
    read_only: tuple[Path, ...] = ()

    @classmethod
    def parse(cls, root: Path, paths: str, read_only_paths: str) -> LogFolders:
        """Parse two settings of comma-separated folders. A relative path is below *root*; default: its `commitlog`.

        Raises ValueError if no folder is writable.
        """
        read_only = _folders(root, read_only_paths)
        folders = _folders(root, paths) or (root / "commitlog",)
        writable = tuple(folder for folder in folders if folder not in read_only)
        if not writable:
            raise ValueError("every folder of the CommitLog is read-only: at least one must be writable")
        return cls(writable, read_only)

    @property
    def all(self) -> tuple[Path, ...]:
        """All folders, writable and read-only."""
        return self.writable + self.read_only

    def of_new_file(self, number: int, is_full: Callable[[Path], bool]) -> Path:
        """Return the folder of new file *number* (start offset / size): round robin over writable, not full folders."""
        folders = [folder for folder in self.writable if not is_full(folder)] or self.writable
        return folders[number % len(folders)]


def _folders(root: Path, paths: str) -> tuple[Path, ...]:
    return tuple(sorted({root / path.strip() for path in paths.split(SEPARATOR) if path.strip()}))
