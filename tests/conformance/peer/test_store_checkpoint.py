"""RocketMQ's StoreCheckpointTest."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.conformance


def test_cp1_values_are_read_back_after_a_flush(tmp_path: Path) -> None:
    """physic 0xAABB and logics 0xCCDD, big-endian at bytes 0 and 8 of 4096; a new reader gets both."""
    path = tmp_path / "checkpoint"
    checkpoint = Checkpoint.open_to_write(path, DiskStorage())
    checkpoint.set(Field.PHYSIC_MESSAGE_TIMESTAMP, 0xAABB)
    checkpoint.set(Field.LOGICS_MESSAGE_TIMESTAMP, 0xCCDD)
    checkpoint.flush()
    checkpoint.close()
    assert path.read_bytes() == struct.pack(">qq", 0xAABB, 0xCCDD).ljust(4096, b"\0")
    again = Checkpoint.open_read_only(path)
    assert again.get(Field.PHYSIC_MESSAGE_TIMESTAMP) == 0xAABB
    assert again.get(Field.LOGICS_MESSAGE_TIMESTAMP) == 0xCCDD
    again.close()
