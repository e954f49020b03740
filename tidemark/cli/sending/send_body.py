"""Sends the one message of `produce TOPIC BODY`, and prints where it is stored."""

from __future__ import annotations

from tidemark.cli.sending.line_input import LineRow
from tidemark.cli.sending.send_lines import message_of
from tidemark.cli.sending.send_rows import SendPlan
from tidemark.cli.terminal.exit_status import say
from tidemark.cli.terminal.output import print_facts, print_json, time_text
from tidemark.client import Producer, SendResult


def send_body(row: LineRow, plan: SendPlan, *, as_json: bool) -> None:
    """Send *row* as one message. Raises the StoreError of the writer's reason."""
    with Producer(plan.writer) as producer:
        result = producer.send(message_of(plan.topic, row, delay_level=plan.delay_level))
    if not result.status.is_confirmed:
        say(f"warning: stored, but not confirmed yet ({result.status.name}): the message may still be lost")
    if as_json:
        print_json(_document(result))
    else:
        print_facts(_facts(result))


def _facts(result: SendResult) -> dict[str, object]:
    """Return the message's place. A delayed message has none in its topic yet."""
    facts: dict[str, object] = {"topic": result.topic}
    if result.deliver_timestamp_ms:
        facts["delivered at"] = time_text(result.deliver_timestamp_ms)
    else:
        facts |= {"queue": result.queue_id, "queue offset": result.queue_offset}
    return facts | {
        "physical offset": result.physical_offset,
        "message id": result.message_ids[0],
        "offset message id": result.offset_message_ids[0],
        "stored": time_text(result.store_timestamp_ms),
    }


def _document(result: SendResult) -> dict[str, object]:
    is_delayed = bool(result.deliver_timestamp_ms)
    return {
        "topic": result.topic,
        "acknowledged": 1,
        "complete": True,
        "end_physical_offset": result.end_physical_offset,
        "queue_id": None if is_delayed else result.queue_id,
        "queue_offset": None if is_delayed else result.queue_offset,
        "physical_offset": result.physical_offset,
        "message_id": result.message_ids[0],
        "offset_msg_id": result.offset_message_ids[0],
        "store_timestamp_ms": result.store_timestamp_ms,
        "deliver_timestamp_ms": result.deliver_timestamp_ms or None,
    }
