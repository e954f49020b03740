"""Templates of `consume --template`."""

from __future__ import annotations

import pytest
import typer

from tidemark.cli.reading.message_template import message_template

_MESSAGE = {
    "topic": "orders",
    "queue_id": 2,
    "queue_offset": 17,
    "store_timestamp_ms": 1_769_860_923_456,
    "message_id": "7F01",
    "tag": "paid",
    "keys": ["k1", "k2"],
    "properties": {"region": "eu", "trace": "\x1b[31m"},
    "body": "grün\n",
    "body_encoding": "utf8",
}
_BINARY = {**_MESSAGE, "body": "//4A", "body_encoding": "base64", "tag": None, "keys": [], "message_id": None}


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        (r"%t/%q@%o", b"orders/2@17"),
        (r"%k\t%g\n", b"k1 k2\tpaid\n"),
        (r"%b|", "grün\n|".encode()),
        (r"%x %S", b"6772c3bc6e0a 6"),
        (r"%T %D", b"1769860923456 2026-01-31T12:02:03.456Z"),
        (r"%p", rb'{"region":"eu","trace":"\u001b[31m"}'),
        (r"%i%%", b"7F01%"),
        (r"%%b%%%q", b"%b%2"),
        (r"\0\x41\xff\\n\r%q", b"\0A\xff\\n\r2"),
        ("ü%q", "ü2".encode()),
    ],
)
def test_a_template_is_filled_with_parts_and_escapes(template: str, shown: bytes) -> None:
    """Parts are written as they are when the output is no terminal."""
    assert message_template(template, for_terminal=False)(_MESSAGE) == shown


def test_a_body_that_is_no_text_is_written_as_its_bytes() -> None:
    """Missing parts are empty."""
    assert message_template(r"[%k][%g][%i]%b", for_terminal=False)(_BINARY) == b"[][][]\xff\xfe\x00"


def test_parts_are_escaped_for_a_terminal() -> None:
    """The template's own control characters are the user's, and are kept."""
    assert message_template(r"%b\n", for_terminal=True)(_MESSAGE) == "grün\\n\n".encode()
    assert message_template(r"%b\x1b", for_terminal=True)(_BINARY) == b"\\xff\\xfe\\x00\x1b"
    hostile = {**_MESSAGE, "body": "\x1b[2Ja\u202eb\x9b"}
    assert message_template("%b", for_terminal=True)(hostile) == rb"\x1b[2Ja\u202eb\x9b"


@pytest.mark.parametrize(
    ("template", "reported"),
    [("%z", "%z is unknown"), ("100%", "% is unknown"), (r"\q", r"\q is no escape"), (r"\x4", r"\x is no escape")],
)
def test_an_unknown_part_or_escape_is_a_usage_error(template: str, reported: str) -> None:
    """The error lists the known ones."""
    with pytest.raises(typer.BadParameter) as refused:
        message_template(template, for_terminal=False)
    assert reported in refused.value.message
    assert r"\n \t \r \0 \\ \xNN" in refused.value.message
    assert template.startswith("\\") or "%T store time in epoch milliseconds" in refused.value.message


@pytest.mark.parametrize("template", ["", "{key} {body}", "100%%"])
def test_a_template_without_a_part_is_a_usage_error(template: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"has no part of the message: %t topic, .*%b body"):
        message_template(template, for_terminal=False)
