"""TagFilter: selects messages by tags (docs/format.md §14), first by hash in the unit, then by text in the message."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tidemark.format.dispatch_request import U8Array
from tidemark.format.message import MessageArray
from tidemark.format.tags import EXT_ADDRESS_LIMIT, parse_tag_expression, tags_code


class TagFilter:
    """A set of tags. `matches_code` may accept wrong ones, because hashes collide; `matches_text` is exact."""

    def __init__(self, tags: Iterable[str]) -> None:
        self.tags = frozenset(tags)
        self._texts = frozenset(tag.encode() for tag in self.tags)
        self._codes = np.array(sorted({tags_code(tag) for tag in self.tags}), np.int64)

    @classmethod
    def parse(cls, expressions: Iterable[str]) -> TagFilter | None:
        """Parse ``A``, ``A || B`` or several of them; None if all messages match (``*`` or no expression)."""
        tags: set[str] = set()
        for expression in expressions:
            parsed = parse_tag_expression(expression)
            if parsed is None:
                return None
            tags |= parsed
        return cls(tags) if tags else None

    def matches_code(self, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which units may match, including addresses in an extension (docs/format.md §4)."""
        return np.isin(codes.astype(np.int32), self._codes) | (codes <= EXT_ADDRESS_LIMIT)

    def matches_text(self, buffer: U8Array, messages: MessageArray) -> NDArray[np.bool_]:
        """Return which messages have one of the tags."""
        view = buffer.data
        places, lengths = messages["tags_at"].tolist(), messages["tags_length"].tolist()
        found = [bytes(view[at : at + length]) in self._texts for at, length in zip(places, lengths, strict=True)]
        return np.array(found, np.bool_)
