"""`tidemark/query/members.json`: the members of all groups, from one process to the next (docs/format.md §9).

Written at an orderly stop by who owns the offsets, and taken away by the next owner, whoever that is: no table is used
twice. Without it, or after the machine was started again, members join anew, and read again what was not committed.
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
    """For the next process. On a full disk there is no file, as after a kill."""
    if not groups:
        return
    content = {"version": _VERSION, "boot_id": machine_boot_id(), "groups": groups}
    with contextlib.suppress(OSError, StoreError):
        replace_file(storage, paths.members, orjson.dumps(content), keep_previous=False)


def take_members(paths: StorePaths, storage: Storage) -> dict[str, Any]:
    """What the process before has left, and nobody else will find; {} where it has left nothing that holds now."""
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
