"""GroupState ⇄ JSON."""

from __future__ import annotations

import orjson

from tidemark.replication.group_state import GroupState

_VERSION = 1


def encode_state(state: GroupState) -> bytes:
    """Return *state* as JSON."""
    content = {
        "version": _VERSION,
        "group": state.group,
        "revision": state.revision,
        "epoch": state.epoch,
        "writer": state.writer,
        "inSync": sorted(state.in_sync),
        "eligible": sorted(state.eligible),
        "minInSync": state.min_in_sync,
    }
    return orjson.dumps(content)


def decode_state(data: bytes) -> GroupState:
    """Return the state in *data*.

    Raises:
        ValueError, KeyError, TypeError: *data* is no state.
    """
    content = orjson.loads(data)
    if content["version"] != _VERSION:
        raise ValueError(f"the state has version {content['version']}, and only {_VERSION} is known")
    return GroupState(
        int(content["revision"]),
        int(content["epoch"]),
        content["writer"],
        frozenset(content["inSync"]),
        frozenset(content["eligible"]),
        int(content["minInSync"]),
        str(content["group"]),
    )
