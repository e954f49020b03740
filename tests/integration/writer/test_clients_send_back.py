"""SendBack with the original's UNIQ_KEY: two messages with one key each get their own copies."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.builders import properties, wire_batch
from tests.waiting import until
from tidemark.format.properties import decode_properties

from .harness import RunningWriter
from .test_delay import index
from .test_send_back import RETRY, SCHEDULE, in_topic, send_back

pytestmark = pytest.mark.integration
MESSAGE = wire_batch((b"x", properties({"UNIQ_KEY": "u"}), 0))


def has_retries(writer: RunningWriter, root: Path, count: int) -> bool:
    """Return True if *count* retries are committed."""
    committed = writer.info().committed_offset
    return sum(record.physical_offset < committed for record in in_topic(root, RETRY)) == count


def test_messages_of_two_topics_with_one_key_are_both_sent_back(tmp_path: Path) -> None:
    """A repeat is stored once, and the next try is another message."""
    with RunningWriter(tmp_path) as writer:
        places = {topic: writer.append(topic, MESSAGE).physical_offset for topic in ("t", "s")}
        for topic, place in places.items():
            for duplicate in (False, True):
                answer = send_back(
                    writer, place, topic=topic, keep_unique_key=True, origin_message_id=f"{place:X}", delay_level=18
                )
                assert answer.appended.duplicate is duplicate
        assert not send_back(writer, places["t"], group="h", keep_unique_key=True).appended.duplicate
    copies = [decode_properties(copy.properties) for copy in in_topic(tmp_path, SCHEDULE)]
    assert [copy["UNIQ_KEY"] for copy in copies] == ["u"] * 3
    assert [copy["ORIGIN_MESSAGE_ID"] for copy in copies[:2]] == [f"{place:X}" for place in places.values()]


def test_a_sent_back_message_with_its_key_is_delivered_each_time_it_fails(tmp_path: Path) -> None:
    with RunningWriter(tmp_path) as writer:
        place = writer.append("t", MESSAGE).physical_offset
        topic = "t"
        for tried in (1, 2):
            assert not send_back(writer, place, topic=topic, keep_unique_key=True, delay_level=1).appended.duplicate
            index(tmp_path)
            until(partial(has_retries, writer, tmp_path, tried))
            topic, copy = RETRY, in_topic(tmp_path, RETRY)[-1]
            assert (copy.reconsume_times, decode_properties(copy.properties)["UNIQ_KEY"]) == (tried, "u")
            place = copy.physical_offset
