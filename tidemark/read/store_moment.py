"""What requests read of the whole store before they read queues: once for all queues of a look."""

from __future__ import annotations

from typing import NamedTuple

from tidemark.read.look import found_in_look, note_found
from tidemark.read.store_reader import Catalog, StoreReader
from tidemark.read.watermark import Watermark


class StoreMoment(NamedTuple):
    """The store's watermark, the minimum of its log, and its topics, at one moment.

    catalog  None: each queue reads the current topics, which costs two system calls
    """

    watermark: Watermark
    log_min: int
    catalog: Catalog | None = None

    @classmethod
    def of_look(cls, store: StoreReader, watermark: Watermark) -> StoreMoment:
        """Return the moment at *watermark*; one look at the store reads the rest once."""
        rest = found_in_look(store)
        if rest is None:
            rest = store.log_min, store.catalog()
            note_found(store, rest)
        return cls(watermark, *rest)
