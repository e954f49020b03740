from __future__ import annotations

import itertools

from tidemark.format.elements import Element, decode_elements, encode_elements, encode_plain_element

BODIES, PROPERTIES, FLAGS = (b"", b"a", b"body" * 100), (b"", b"K\x01v\x02", b"K\x01w\x02"), (0, 1, -5)
ELEMENTS = [Element(*parts) for parts in itertools.product(BODIES, PROPERTIES, FLAGS)]


def test_elements_of_changing_shapes_are_decoded_as_they_were_encoded() -> None:
    """Each follows one of the same shape, one that differs in one part, and one that differs in all."""
    mixed = [*ELEMENTS, *ELEMENTS[::-1], *(element for element in ELEMENTS for _ in range(3))]
    assert list(decode_elements(encode_elements(mixed))) == mixed


def test_a_plain_element_has_the_bytes_of_an_element_without_properties() -> None:
    for body in BODIES:
        assert encode_plain_element(body) == encode_elements([Element(body)])
