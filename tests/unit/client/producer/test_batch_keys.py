"""The UNIQ_KEYs of a batch."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tidemark.client.message import Message
from tidemark.client.producer.batch_keys import pack_batch
from tidemark.errors import MessageSizeExceededError, PropertiesSizeExceededError
from tidemark.format.elements import decode_elements
from tidemark.format.message_id import UniqueKeys
from tidemark.format.properties import decode_properties

MAX_SIZE = 4 << 20


def stored_keys(packed: bytes) -> list[str | None]:
    return [decode_properties(element.properties).get("UNIQ_KEY") for element in decode_elements(packed)]


def batch(*unique_keys: str | None) -> Sequence[Message]:
    return [Message("t", b"x", properties={"UNIQ_KEY": key} if key else {}) for key in unique_keys]


def test_each_message_gets_a_key_and_the_first_one_is_the_request_id() -> None:
    """Two batches have no key in common."""
    maker = UniqueKeys()
    made = [pack_batch(batch(None, None, None), None, maker, max_size=MAX_SIZE) for _ in range(2)]
    for one in made:
        assert stored_keys(one.packed) == list(one.message_ids) == one.message_ids[:]
        assert one.message_ids[0] == one.request_id
    assert len({key for one in made for key in one.message_ids}) == 6


@pytest.mark.parametrize(
    ("request_id", "own", "expected"),
    [
        ("job", (None, None, None), ["job", "job#1", "job#2"]),
        ("job", (None, "mine", None), ["job", "mine", "job#2"]),
        ("job", ("mine", None, None), ["mine", "mine#1", "mine#2"]),
        (None, ("mine", None), ["mine", "mine#1"]),
    ],
)
def test_keys_of_a_named_batch_are_the_same_in_each_call(
    request_id: str | None, own: tuple[str | None, ...], expected: list[str]
) -> None:
    """The writer can thus recognise the repetition."""
    maker = UniqueKeys()
    first, second = (pack_batch(batch(*own), request_id, maker, max_size=MAX_SIZE) for _ in range(2))
    assert first.packed == second.packed
    assert stored_keys(first.packed) == list(first.message_ids) == expected


def test_a_batch_that_is_full_without_keys_is_packed_without_them() -> None:
    """The batch was accepted before messages had keys."""
    messages = [Message("t", bytes(MAX_SIZE // 2 - 22))] * 2
    full = pack_batch(messages, "job", UniqueKeys(), max_size=MAX_SIZE)
    assert (len(full.packed), stored_keys(full.packed)) == (MAX_SIZE, [None, None])
    assert full.message_ids == ["job", "job#1"]
    with pytest.raises(MessageSizeExceededError):
        pack_batch([*messages, Message("t", b"x")], "job", UniqueKeys(), max_size=MAX_SIZE)


def test_properties_without_room_for_the_key_are_refused_with_the_message() -> None:
    """The error names the number of the message and both sizes."""
    fits = Message("t", b"x", properties={"p": "v" * (32_767 - 42 - 3)})
    over = Message("t", b"x", properties={"p": "v" * (32_767 - 42 - 2)})
    pack_batch([fits, fits], None, UniqueKeys(), max_size=MAX_SIZE)
    with pytest.raises(PropertiesSizeExceededError, match=r"message 1 .* 32,768 .* 32,767") as raised:
        pack_batch([fits, over], None, UniqueKeys(), max_size=MAX_SIZE)
    assert raised.value.facts["at"] == 1
