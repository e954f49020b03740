"""Messages as text: one with all its fields, or many as lines with columns of fixed width."""

from __future__ import annotations

from typing import Any

from tidemark.cli.terminal.output import printable, time_text

Message = dict[str, Any]
_LINE = "{queue_id:>5}  {queue_offset:>10}  {stored:24}  {tag:12}  {keys:16}  {body}"
HEADER = _LINE.format(
    queue_id="queue", queue_offset="offset", stored="stored", tag="tag", keys="keys", body="body"
).rstrip()


def message_line(message: Message) -> str:
    """Return one line. A long value is not cut, but shifts the following columns to the right."""
    return _LINE.format(
        queue_id=message["queue_id"],
        queue_offset=message["queue_offset"],
        stored=time_text(message["store_timestamp_ms"]),
        tag=printable(message["tag"] or ""),
        keys=printable(" ".join(message["keys"])),
        body=printable(body_text(message)),
    ).rstrip()


def message_facts(message: Message) -> dict[str, object]:
    """Return every field by its displayed name."""
    return {
        "topic": message["topic"],
        "queue": message["queue_id"],
        "queue offset": message["queue_offset"],
        "physical offset": message["physical_offset"],
        "message id": message["message_id"],
        "offset message id": message["offset_msg_id"],
        "stored": time_text(message["store_timestamp_ms"]),
        "born": time_text(message["born_timestamp_ms"]),
        "tag": message["tag"],
        "keys": " ".join(message["keys"]),
        "properties": ", ".join(f"{name}={value}" for name, value in message["properties"].items()),
        "flags": f"{message['flag']}, system flags {message['sys_flag']}",
        "reconsume times": message["reconsume_times"],
        "from": message["born_host"],
        "stored by": message["store_host"],
        "body": body_text(message),
    }


def body_text(message: Message) -> str:
    """Return the body as text; if it is not text, with its encoding (base64) as a prefix."""
    if message["body_encoding"] == "utf8":
        return str(message["body"])
    return f"{message['body_encoding']}:{message['body']}"


def body_bytes(message: Message) -> bytes:
    """Return the body as it was sent. *message*: from a pull with body_encoding base64 or auto."""
    import binascii

    body: str = message["body"]
    return binascii.a2b_base64(body) if message["body_encoding"] == "base64" else body.encode()
