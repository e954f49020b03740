"""Tree: the content of a folder as plain values, and its creation on a disk."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple, TypeVar

Entry = TypeVar("Entry")


class Tree(NamedTuple):
    """Files by path below the root, and the folders, parents before children."""

    files: dict[str, bytes]
    folders: tuple[str, ...] = ()

    def key(self) -> frozenset[tuple[str, bytes]]:
        """Return a key that is equal for equal trees."""
        return frozenset([*self.files.items(), *((folder, b"/") for folder in self.folders)])


def read_tree(root: Path) -> Tree:
    """Return the content below *root*."""
    files, folders = {}, []
    for path in sorted(root.rglob("*")):
        place = str(path.relative_to(root))
        if path.is_dir():
            folders.append(place)
        else:
            files[place] = path.read_bytes()
    return Tree(files, tuple(folders))


def put_tree(tree: Tree, root: Path) -> Path:
    """Make *root* contain exactly the tree."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    for folder in tree.folders:
        os.mkdir(root / folder)
    for place, data in tree.files.items():
        descriptor = os.open(root / place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.write(descriptor, data)
        os.close(descriptor)
    return root


def is_within(path: str, folder: str) -> bool:
    """Return True if *path* is *folder* or below it."""
    return path == folder or path.startswith(f"{folder}/")


def renamed(names: dict[str, Entry], source: str, target: str) -> dict[str, Entry]:
    """Return *names* after a rename of the file or folder *source* to *target*."""
    moved = {path: entry for path, entry in names.items() if is_within(path, source)}
    kept = {path: entry for path, entry in names.items() if path not in moved}
    return kept | {target + path.removeprefix(source): entry for path, entry in moved.items()}
