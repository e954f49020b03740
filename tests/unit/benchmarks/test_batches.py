"""Batches of the benchmarks' producers."""

from __future__ import annotations

from benchmarks.batches import plain_batch, unique_batches
from tidemark.format.elements import decode_elements
from tidemark.format.properties import KEYS, UNIQ_KEY, decode_properties


def test_each_message_of_unique_batches_has_its_own_unique_key_and_key() -> None:
    """Otherwise the writer would treat a batch as a duplicate."""
    batches = list(unique_batches(7, 30, 16, key_prefix="2-"))
    elements = [list(decode_elements(batch)) for batch in batches]
    properties = [decode_properties(element.properties) for batch in elements for element in batch]
    assert [len(batch) for batch in elements] == [30] * 7
    assert len({found[UNIQ_KEY] for found in properties}) == 7 * 30
    assert [found[KEYS] for found in properties] == [f"2-{number}" for number in range(7 * 30)]
    assert {len(element.body) for batch in elements for element in batch} == {16}


def test_a_plain_batch_holds_text_bodies_without_properties() -> None:
    """They are also pulled as JSON text."""
    elements = list(decode_elements(plain_batch(3, 50)))
    assert [(len(element.body), element.properties) for element in elements] == [(50, b"")] * 3
    assert all(element.body.decode().isalpha() for element in elements)
