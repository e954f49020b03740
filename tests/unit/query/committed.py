"""The mark of a writer that has committed records which are not indexed yet (docs/format.md)."""

from __future__ import annotations

import struct

from tests.built_store import BuiltStore
from tidemark.store.originals.terms import machine_boot_id


def commit(built: BuiltStore) -> None:
    """Record all of the log as committed, by a writer of this boot of the machine."""
    writer = built.root / "tidemark" / "writer"
    writer.mkdir(parents=True, exist_ok=True)
    (writer / "terms").write_text(f"1 0 {machine_boot_id()}\n")
    (built.root / "checkpoint").write_bytes(bytes(32) + struct.pack(">q", built.end) + bytes(4056))
    built.marks.adopt_term(0, 1, end_offset=1 << 40)
