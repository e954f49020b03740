"""A message is shown only if its record confirms its position, queue offset and body CRC."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.built_store import BuiltStore, Written

from .attached import Attached, attach

BAD = 4  # queue offset of the wrong record


def spoil_position(broker: BuiltStore, written: Written) -> None:
    broker.write_log(written.physical_offset + 28, (written.physical_offset - 1).to_bytes(8, "big"))


def spoil_queue_offset(broker: BuiltStore, written: Written) -> None:
    broker.write_log(written.physical_offset + 20, (written.queue_offset + 1).to_bytes(8, "big"))


def spoil_body(broker: BuiltStore, written: Written) -> None:
    broker.write_log(written.physical_offset + 88, b"X")


def point_elsewhere(broker: BuiltStore, written: Written) -> None:
    broker.write_unit("orders", 0, written._replace(physical_offset=written.physical_offset + 1), {})


SPOILED = {
    "POSITION": spoil_position,
    "QUEUE_OFFSET": spoil_queue_offset,
    "BODY_CRC": spoil_body,
    "MAGIC": point_elsewhere,
}


@pytest.fixture
def written(tmp_path: Path) -> tuple[BuiltStore, list[Written]]:
    """Return ten messages in one queue; all have the key `k`."""
    store = BuiltStore(tmp_path / "store", marked=False)
    store.topic("orders")
    return store, [store.append("orders", f"m{number}".encode(), {"KEYS": "k"}) for number in range(10)]


def require_only_good(attached: Attached, bad: Written, reason: str) -> None:
    """Require that every access leaves out the bad message, and that the pull reports the reason."""
    good = [f"m{number}" for number in range(10) if number != BAD]
    for semantics in ("tidemark", "rocketmq"):
        answer = attached.pull("orders", semantics=semantics)
        assert [message["body"] for message in answer["messages"]] == good
        assert [(skipped["queue_offset"], skipped["reason"]) for skipped in answer["skipped"]] == [(BAD, reason)]
    for by in ({}, {"key": "k"}):
        answer = attached.get("/v1/topics/orders/messages", body_encoding="utf8", **by)
        assert [message["body"] for message in answer["messages"]] == good
    if reason != "MAGIC":  # only the unit is wrong
        refused = attached.client.get(f"/v1/messages/at/{bad.physical_offset}")
        assert refused.status_code == (500 if reason == "BODY_CRC" else 404), refused.text
    raw = attached.client.get(
        "/v1/topics/orders/queues/0/messages?offset=0", headers={"Accept": "application/octet-stream"}
    )
    assert raw.content.count(b"orders") == 9


@pytest.mark.parametrize("reason", list(SPOILED))
def test_a_record_that_contradicts_its_unit_is_not_returned(
    written: tuple[BuiltStore, list[Written]], tmp_path: Path, reason: str
) -> None:
    """It is wrong before the start, or becomes wrong while it is followed."""
    broker, records = written
    SPOILED[reason](broker, records[BAD])
    with attach(broker.root, tmp_path / "before") as attached:
        attached.wait_for_watermark(broker.end)
        require_only_good(attached, records[BAD], reason)


@pytest.mark.parametrize("reason", list(SPOILED))
def test_a_record_damaged_after_publication_is_not_returned(
    written: tuple[BuiltStore, list[Written]], tmp_path: Path, reason: str
) -> None:
    """Each reader checks records that were right when they were published."""
    broker, records = written
    with attach(broker.root, tmp_path / "state") as attached:
        attached.wait_for_watermark(broker.end)
        assert len(attached.bodies("orders")) == 10
        SPOILED[reason](broker, records[BAD])
        require_only_good(attached, records[BAD], reason)


def test_a_damaged_body_is_recorded_in_the_ledger(written: tuple[BuiltStore, list[Written]], tmp_path: Path) -> None:
    """A broker dispatches it without checking its body."""
    broker, _ = written
    with attach(broker.root, tmp_path / "state") as attached:
        attached.wait_for_watermark(broker.end)
        bad = broker.append("orders", b"damaged", unit=False)
        spoil_body(broker, bad)
        broker.write_unit("orders", 0, bad, {})
        attached.wait_for_watermark(broker.end)
        (told,) = attached.get("/v1/corruptions")["corruptions"]
        assert (told["physical_offset"], told["reason"], told["topic"]) == (bad.physical_offset, "BODY_CRC", "orders")
