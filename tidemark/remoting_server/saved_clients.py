"""SavedClients: the file with the members of all groups, from one process to the next."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import orjson
import structlog

from tidemark.errors import StoreError
from tidemark.store.storage import Storage, replace_file

from .client_groups import SavedMembers

log = structlog.get_logger()

_VERSION = 1
_PAUSE_S = 0.5  # between two writes


def load_clients(path: Path) -> SavedMembers:
    """Return the members that the process before has saved; {} without a valid file."""
    try:
        content = orjson.loads(path.read_bytes())
        if content["version"] == _VERSION:
            return {str(group): [str(member) for member in members] for group, members in content["groups"].items()}
    except FileNotFoundError:
        pass
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        log.warning("remoting_clients_not_loaded", path=str(path), error=str(error))
    return {}


class SavedClients:
    """Saves the members after each change, together with other changes of the same half second."""

    def __init__(self, path: Path, storage: Storage) -> None:
        self._path = path
        self._storage = storage
        self._members: Callable[[], SavedMembers] | None = None  # changed, and not saved yet
        self._saving: asyncio.Task[None] | None = None

    def save(self, members: Callable[[], SavedMembers]) -> None:
        """Save the result of *members* soon. Call it on the event loop, on which it calls *members*."""
        self._members = members
        if self._saving is None:
            self._saving = asyncio.create_task(self._save())

    async def close(self) -> None:
        """Wait for the last write."""
        if self._saving is not None:
            await self._saving

    async def _save(self) -> None:
        while self._members is not None:
            members, self._members = self._members, None
            await asyncio.to_thread(self._write, members())
            await asyncio.sleep(_PAUSE_S)
        self._saving = None

    def _write(self, members: SavedMembers) -> None:
        content = orjson.dumps({"version": _VERSION, "groups": members})
        with contextlib.suppress(OSError, StoreError):  # without the file, a list may be incomplete after a restart
            self._storage.make_folder(self._path.parent)
            replace_file(self._storage, self._path, content, keep_previous=False)
