"""A pipeline's marks without a pipeline: a test states the durable offset."""

from __future__ import annotations

from pathlib import Path

from tidemark.store.marks import Marks
from tidemark.store.originals.terms import current_term
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage


def mark_durable(root: Path, physical_offset: int, *, term: int | None = None) -> None:
    """Mark everything below *physical_offset* as durably built by one shard, in *term* or the writer's current term."""
    paths = StorePaths(root)
    term = current_term(paths.terms).number if term is None else term
    marks = Marks.open_to_write(paths.marks, DiskStorage(), shards=1, term=term)
    marks.adopt_term(0, term, end_offset=physical_offset)
    marks.publish(0, physical_offset)
    marks.publish_durable(0, physical_offset)
    marks.close()
