"""`tidemark/query/members.json`: the members of all groups, from one process to the next (docs/format.md §9).

The owner of the offsets writes the file at an orderly stop, and the next owner removes it, so that no table is used
twice. Without the file, or after a restart of the machine, members join again and read uncommitted messages again.
"""

from __future__ import annotations

import contextlib
from typing import Any

import orjson
import structlog

from tidemark.errors import StoreError
from tidemark.store.originals.terms import machine_boot_id
from tidemark.store.paths import StorePaths
from tidemark.store.storage import Storage, replace_file

_log = structlog.get_logger()
_VERSION = 1


def leave_members(paths: StorePaths, storage: Storage, groups: dict[str, Any]) -> None:
    """Write the members for the next process. On a full disk no file is written, as after a kill."""
    if not groups:
        return
    content = {"version": _VERSION, "boot_id": machine_boot_id(), "groups": groups}
    with contextlib.suppress(OSError, StoreError):
        replace_file(storage, paths.members, orjson.dumps(content), keep_previous=False)


def take_members(paths: StorePaths, storage: Storage) -> dict[str, Any]:
    """Remove the file and return the members that the previous process wrote; {} without a valid file."""
    try:
        data = paths.members.read_bytes()
        storage.unlink(paths.members)
        content = orjson.loads(data)
        if (content["version"], content["boot_id"]) == (_VERSION, machine_boot_id()):
            return dict(content["groups"])
    except FileNotFoundError:
        pass
    except (OSError, KeyError, TypeError, ValueError) as error:
        _log.warning("members_not_taken_over", path=str(paths.members), error=str(error))
    return {}
