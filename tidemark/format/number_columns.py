"""Numeric fields of messages as columns, and facts about all of them that save later searches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format.dispatch_request import U8Array
from tidemark.format.kernels import columns as kernel
from tidemark.format.message import MessageArray


class NumberColumns(NamedTuple):
    """One value per message, named as in MESSAGE. sys_flag: for an element, without the flags of its inner batch."""

    queue_offset: NDArray[np.int64]
    physical_offset: NDArray[np.int64]
    store_timestamp: NDArray[np.int64]
    born_timestamp: NDArray[np.int64]
    flag: NDArray[np.int32]
    sys_flag: NDArray[np.int32]
    reconsume_times: NDArray[np.int32]
    body_crc: NDArray[np.int32]


class MessageFacts(NamedTuple):
    """Facts about a set of messages."""

    has_one_born_host: bool
    has_one_store_host: bool
    compressed: int  # number of compressed bodies
    other_properties: int  # number of messages with properties other than TAGS, KEYS and UNIQ_KEY


def number_columns(buffer: U8Array, messages: MessageArray) -> tuple[NumberColumns, MessageFacts]:
    """Return columns and facts of *messages*, whose positions refer to *buffer*."""
    n = len(messages)
    longs, integers = np.empty((4, n), np.int64), np.empty((4, n), np.int32)
    columns = NumberColumns(*longs, *integers)
    facts = np.zeros(kernel.N_FACTS, np.int64)
    kernel.fill_columns(buffer, messages, tuple(columns), facts)
    born, store, compressed, others = facts.tolist()
    return columns, MessageFacts(not born, not store, compressed, others)
