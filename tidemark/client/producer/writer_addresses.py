"""The writers that a producer sends to: a fixed list of addresses, or a file that may change."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import orjson

from tidemark.client.errors.address_faults import require_store_address
from tidemark.errors import ArgumentIllegalError

_LOOK_EVERY_S = 1.0


class WriterList(Protocol):
    """A source of writer addresses."""

    def addresses(self) -> tuple[str, ...]:
        """Return the entry of each current writer: host:port, or those of a group's members, separated by |."""


class FixedList:
    """A fixed list. writers: an entry for each store, as a sequence or separated by commas; see `members_of`."""

    def __init__(self, writers: str | Sequence[str]) -> None:
        parts = writers.split(",") if isinstance(writers, str) else writers
        self._addresses = _checked(parts, "writers")

    def addresses(self) -> tuple[str, ...]:
        return self._addresses


class RouteFile:
    """A TOML or JSON file (by its suffix) with one top-level line ``name = "host:port"`` per writer, or
    ``name = "host:port|host:port|…"`` per group.

    It is checked once a second and read again after a change. While it cannot be read or parsed, for example in the
    middle of a change, the previous writers stay in use.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._addresses = _read(path)
        self._stamp = _stamp(path)
        self._looked_at = time.monotonic()

    def addresses(self) -> tuple[str, ...]:
        if time.monotonic() - self._looked_at > _LOOK_EVERY_S:
            self._looked_at = time.monotonic()
            self._look()
        return self._addresses

    def _look(self) -> None:
        try:
            stamp = _stamp(self._path)
            if stamp != self._stamp:
                self._addresses = _read(self._path)
                self._stamp = stamp
        except (OSError, ArgumentIllegalError):
            return


def _stamp(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read(path: Path) -> tuple[str, ...]:
    text = path.read_text()
    try:
        table: Any = orjson.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except ValueError as error:  # both parsers raise subclasses of it
        raise ArgumentIllegalError(f"{path} is not a route file: {error}", argument="route_file") from error
    if not isinstance(table, dict) or not all(isinstance(address, str) for address in table.values()):
        raise ArgumentIllegalError(
            f'{path} is not a route file: it needs lines of the form name = "host:port"', argument="route_file"
        )
    return _checked(list(table.values()), "route_file")


def _checked(parts: Sequence[str], argument: str) -> tuple[str, ...]:
    addresses = tuple(dict.fromkeys(part.strip() for part in parts))
    if not addresses:
        raise ArgumentIllegalError(f"{argument} has no writer; give at least one host:port", argument=argument)
    return tuple(require_store_address(address, argument) for address in addresses)
