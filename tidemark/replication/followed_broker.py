"""How the copy of a RocketMQ broker's log goes: a small file by the writer service, for the query service and tools."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

import orjson

_NAME = "state.json"


class FollowedBroker(NamedTuple):
    """The broker that a store follows.

    address       host:port of its remoting port; "" if it is not known yet
    is_connected  the broker sends its log
    behind_bytes  bytes of its log that this store lacks, at the last look at both ends; None before the first look
    problem       why it is not connected; "" if it is
    at_ms         epoch milliseconds at which this was so
    """

    broker: str
    address: str
    is_connected: bool
    behind_bytes: int | None
    problem: str
    at_ms: int


def save_followed_broker(folder: Path, state: FollowedBroker) -> None:
    """Replace the file in *folder*, which must exist. It is not synced: a start writes it again."""
    temporary = folder / f"{_NAME}.new"
    temporary.write_bytes(orjson.dumps(state._asdict()))
    os.replace(temporary, folder / _NAME)


def read_followed_broker(folder: Path) -> FollowedBroker | None:
    """Return the state; None for a store that follows no broker."""
    try:
        return FollowedBroker(**orjson.loads((folder / _NAME).read_bytes()))
    except (FileNotFoundError, NotADirectoryError, TypeError, orjson.JSONDecodeError):
        return None


def forget_followed_broker(folder: Path) -> None:
    """Remove the file: the store follows no broker any more."""
    (folder / _NAME).unlink(missing_ok=True)


def now_ms() -> int:
    """Epoch milliseconds."""
    return time.time_ns() // 1_000_000
