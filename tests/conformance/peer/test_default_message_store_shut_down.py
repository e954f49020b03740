"""RocketMQ's DefaultMessageStoreShutDownTest: `abort` shows that queues may lack records of the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.peer.message_store import MessageStore, numbered

pytestmark = pytest.mark.conformance


def test_sd1_a_stop_with_undispatched_bytes_leaves_abort(tmp_path: Path) -> None:
    """It is removed only when queues and index are built to the log's end."""
    with MessageStore(tmp_path) as store:
        store.put("t", *numbered(3))
        store.dispatch()
        store.put("t", *numbered(1))
    assert (tmp_path / "abort").exists()
    with MessageStore(tmp_path) as store:
        store.dispatch()
    assert not (tmp_path / "abort").exists()
