"""The messages between a writer and its replicas, as values."""

from __future__ import annotations

from typing import NamedTuple

from tidemark.replication.epochs import Epochs

from .piece import Piece

SILENCE_S = 3.0  # after which either side ends a stream on which it has heard nothing
HEARTBEAT_S = 0.5


class Hello(NamedTuple):
    """A replica's first message. group: "" before its first stream."""

    group: str
    member: str
    identity: str
    promised_epoch: int
    end: int
    confirm: int
    segment_size: int


class Welcome(NamedTuple):
    """The writer's answer. epochs: of its log; min_offset: at which its log begins."""

    group: str
    epoch: int
    epochs: Epochs
    min_offset: int = 0


class Acknowledged(NamedTuple):
    """A replica has synced everything below *end*, and the config *config_number*."""

    end: int
    config_number: int
    free_disk_bytes: int


class Config(NamedTuple):
    """One of the small files. number: ascending in a stream."""

    name: str
    content: bytes
    number: int


class TakeOver(NamedTuple):
    """The replica becomes the writer."""


class Told(NamedTuple):
    """A message of the writer with its present offsets.

    message  None for a heartbeat
    needed   another member may still have to copy the log from this physical offset on
    """

    message: Welcome | Piece | Config | TakeOver | None
    committed: int
    end: int
    needed: int = 0
