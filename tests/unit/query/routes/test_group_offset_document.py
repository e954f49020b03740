from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from services.indexer.query.groups.consumer_offsets import ConsumerOffset
from services.indexer.query.routes.group_offset_document import offset_json
from services.indexer.query.state.service_state import ServiceState
from tests.built_store import BuiltStore
from tidemark.read.store_reader import StoreReader

MESSAGES = 5


def document(built: BuiltStore, offset: int, *, queue_id: int = 0) -> dict[str, Any]:
    store = StoreReader(built.root)
    state = cast(ServiceState, SimpleNamespace(store=store))
    return offset_json(state, store.watermark(), ConsumerOffset("g", "orders", queue_id, offset))


def store_of(root: Path, log_file_size: int = 65_536) -> BuiltStore:
    store = BuiltStore(root, log_file_size=log_file_size)
    store.topic("orders")
    for _ in range(MESSAGES):
        store.append("orders", b"x" * 100)
    store.publish()
    return store


def test_lag_is_the_number_of_messages_up_to_the_visible_end(tmp_path: Path) -> None:
    built = store_of(tmp_path)
    built.append("orders")
    found = document(built, 2)
    assert (found["min_offset"], found["max_offset"]) == (0, MESSAGES)
    assert (found["lag"], found["below_min"]) == (MESSAGES - 2, 0)


def test_an_offset_above_the_end_has_no_lag(tmp_path: Path) -> None:
    assert document(store_of(tmp_path), MESSAGES + 3)["lag"] == 0


def test_deleted_messages_count_as_below_the_minimum_and_not_as_lag(tmp_path: Path) -> None:
    """Retention has deleted the first log file, in which the first messages were."""
    built = store_of(tmp_path, log_file_size=512)
    (tmp_path / "commitlog" / f"{0:020d}").unlink()
    found = document(built, 0)
    assert 0 < found["min_offset"] < MESSAGES
    assert (found["below_min"], found["lag"]) == (found["min_offset"], MESSAGES - found["min_offset"])


def test_a_deleted_queue_has_no_bounds(tmp_path: Path) -> None:
    built = store_of(tmp_path)
    assert document(built, 3, queue_id=7) == {
        "topic": "orders",
        "queue_id": 7,
        "offset": 3,
        "min_offset": None,
        "max_offset": None,
        "below_min": None,
        "lag": None,
    }


def test_an_offset_in_a_deleted_topic_moves_to_the_first_message_of_the_new_one(tmp_path: Path) -> None:
    built = store_of(tmp_path)
    built.delete_topic("orders")
    built.topic("orders")
    assert document(built, 2)["offset"] == MESSAGES
