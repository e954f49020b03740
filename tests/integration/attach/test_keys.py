"""Lookup by key with the broker's index, or with Tidemark's own one in the state folder if there is none."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

import pytest

from services.indexer.attach import key_follower
from tests.built_store import BuiltStore
from tests.waiting import until

from .attached import Attached, attach


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_follower, "_GRACE_S", 0.05)
    monkeypatch.setattr(key_follower, "_LOOK_INTERVAL_S", 0.01)


def find(attached: Attached, key: str) -> list[str]:
    answer = attached.get("/v1/topics/orders/messages", key=key, body_encoding="utf8", limit=1000)
    return [message["body"] for message in answer["messages"]]


def finds(attached: Attached, key: str, bodies: list[str]) -> bool:
    return find(attached, key) == bodies


def own_files(attached: Attached) -> list[Path]:
    folder = attached.state / "index"
    return sorted(folder.iterdir()) if folder.is_dir() else []


def test_the_index_of_the_broker_is_used(broker: BuiltStore, attached: Attached) -> None:
    """Old and new keys are found; no index is built."""
    for number in range(10, 200):
        broker.append("orders", f"m{number}".encode(), {"KEYS": f"k{number}"})
    attached.wait_for_watermark(broker.end)
    until(lambda: find(attached, "k199") == ["m199"], "the newest key is found")
    assert find(attached, "k3") == ["m3"]
    attached.let_look()
    assert own_files(attached) == []


def test_a_late_index_entry_of_the_broker_is_awaited(
    broker: BuiltStore, attached: Attached, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker writes it after the dispatch; no index is built because of the delay."""
    monkeypatch.setattr(key_follower, "_GRACE_S", 3600.0)
    with monkeypatch.context() as late:
        late.setattr(broker, "index", lambda *_: None)
        written = broker.append("orders", b"late", {"KEYS": "late"})
    attached.wait_for_watermark(broker.end)
    for _ in range(30):
        attached.let_look()
    assert find(attached, "late") == []
    broker.index("orders", "late", written)
    assert find(attached, "late") == ["late"]
    assert own_files(attached) == []


def test_a_store_without_an_index_gets_one(broker: BuiltStore, tmp_path: Path) -> None:
    """It covers the whole log, is in the state folder, survives a restart, and expires with the log."""
    shutil.rmtree(broker.root / "index")
    broker.index = lambda *_: None  # type: ignore[method-assign]
    for round_number in range(2):
        with attach(broker.root, tmp_path / "state") as attached:
            for number in range(100):
                broker.append("orders", f"{round_number}-{number}".encode(), {"KEYS": f"n{number}"})
            expected = [f"{earlier}-99" for earlier in range(round_number + 1)]
            until(functools.partial(finds, attached, "n99", expected), "it is indexed")
            assert find(attached, "k3") == ["m3"]
            assert find(attached, "n0") == [f"{earlier}-0" for earlier in range(round_number + 1)]
            assert len(own_files(attached)) > 1
    assert not (broker.root / "index").exists()


def test_an_index_that_the_broker_stops_writing_is_continued(broker: BuiltStore, attached: Attached) -> None:
    """Keys of both parts are found; none twice."""
    attached.wait_for_watermark(broker.end)
    broker.index = lambda *_: None  # type: ignore[method-assign]
    for number in range(10, 30):
        broker.append("orders", f"m{number}".encode(), {"KEYS": f"k{number} all"})
    until(lambda: find(attached, "k29") == ["m29"], "it is indexed")
    assert find(attached, "k3") == ["m3"]
    assert find(attached, "all") == [f"m{number}" for number in range(10, 30)]
    assert own_files(attached)


def test_the_own_index_drops_truncated_records(broker: BuiltStore, attached: Attached) -> None:
    """Keys of overwritten records find nothing, those of the new ones are found."""
    broker.index = lambda *_: None  # type: ignore[method-assign]
    broker.append("orders", b"kept", {"KEYS": "all"})
    until(lambda: find(attached, "all") == ["kept"], "it is indexed")
    attached.wait_for_watermark(broker.end)
    kept, numbers = broker.end, dict(broker.next)
    broker.append("orders", b"lost", {"KEYS": "all"})
    until(lambda: find(attached, "all") == ["kept", "lost"], "it is indexed")
    broker.end, broker.next = kept, numbers
    broker.append("orders", b"new", {"KEYS": "fresh all"}, queue_id=1)
    broker.append("orders", b"more", {"KEYS": "all"})
    until(lambda: find(attached, "all") == ["kept", "new", "more"], "the index follows")
    assert find(attached, "fresh") == ["new"]
