"""The ```python blocks of docs/spark.md are one program, which runs as it stands."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from tests.pages import DOCS, Terminal, program
from tidemark.client import Consumer
from tidemark.client.received_message import ReceivedMessage
from tidemark.local.local_stack import LocalStack

_TIMEOUT_S = 900


@pytest.mark.exhaustive
@pytest.mark.timeout(_TIMEOUT_S)  # a whole program with ten queries, on any machine
def test_the_page_is_a_program(stack: LocalStack, tmp_path: Path) -> None:
    """It runs in a new process, in an activated environment, next to the store's folder `data`.

    Its first block takes the addresses of the services from the environment.
    """
    began_ms = time.time_ns() // 1_000_000
    (tmp_path / "data").symlink_to(stack.data)
    addresses = {"TIDEMARK_QUERY_URL": stack.query_url, "TIDEMARK_WRITER_ADDRESS": stack.writer_address}
    terminal = Terminal(tmp_path, addresses)
    shown = terminal.python(program(DOCS / "spark.md"), _TIMEOUT_S).replace(" ", "")
    assert "Traceback" not in terminal.errors[0]
    assert "1task\n" in shown  # of a filtered read
    assert "|k2|{" in shown  # key and value of Kafka's columns
    assert ("|Ada|" in shown, "|Grace|" in shown) == (True, True)  # from the joined table
    assert len(messages("copies", stack)) == 1000
    orders = messages("orders", stack)
    of_the_page = places(one for one in orders if one.store_timestamp_ms >= began_ms)
    assert len(of_the_page) == 20
    assert stored(tmp_path / "tables" / "tail") == places(orders)
    assert stored(tmp_path / "tables" / "hours") == stored(tmp_path / "tables" / "replay") >= of_the_page


def messages(topic: str, stack: LocalStack) -> list[ReceivedMessage]:
    """Return the messages of *topic*."""
    found = []
    with Consumer(topic, url=stack.query_url) as consumer:
        while polled := consumer.poll(timeout_s=0.5):
            found += polled
    return found


def places(found: Iterable[ReceivedMessage]) -> set[tuple[int, int]]:
    """Return (queue id, queue offset) of each message."""
    return {(one.queue_id, one.queue_offset) for one in found}


def stored(folder: Path) -> set[tuple[int, int]]:
    """Return the places of the messages that a block has written to *folder*; each must be there once."""
    rows = ds.dataset(folder, exclude_invalid_files=True).to_table(["queue_id", "queue_offset"])
    found = list(zip(*(column.to_pylist() for column in rows.itercolumns()), strict=True))
    assert len(found) == len(set(found))
    return set(found)
