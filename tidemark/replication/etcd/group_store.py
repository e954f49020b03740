"""EtcdGroupStore: the group's state in etcd, and the lease of its writer.

Keys, with the group's name:

/tidemark/NAME/state   the state, changed by compare-and-swap only
/tidemark/NAME/writer  identity of the writer, which vanishes with its lease
/tidemark/NAME/yield   number of an epoch whose writer is asked to give up its role; it vanishes after a lease's length

A lease only detects that a writer has failed. Nothing depends on it for safety: replicas follow the newest epoch.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from tidemark.errors import GroupStoreUnavailableError, StaleEpochError
from tidemark.replication.etcd.gateway import EtcdGateway, decoded, encoded
from tidemark.replication.group_state import GroupState
from tidemark.replication.known_state import KnownState
from tidemark.replication.stored_state import decode_state, encode_state

_Json = Mapping[str, Any]


class Seen(NamedTuple):
    """State and lease at one moment.

    state       None before the first election
    holder      identity of the member that holds the writer's lease; None if no member does
    asked_epoch epoch whose writer is asked to give up its role; 0 for none
    """

    state: GroupState | None
    holder: str | None
    asked_epoch: int


class WriterLease:
    """The lease of this member as the writer of *epoch*. One thread at a time uses it.

    It is believed until its length after the last renewal was sent, by a clock that also runs while the machine sleeps.
    """

    def __init__(self, gateway: EtcdGateway, lease: str, epoch: int, *, sent_s: float, ttl_s: float) -> None:
        self._gateway = gateway
        self._lease = lease
        self.epoch = epoch
        self._ttl_s = ttl_s
        self.valid_until_s = sent_s + ttl_s

    @property
    def remaining_s(self) -> float:
        """Seconds for which the lease is held; not positive if it may have run out."""
        return self.valid_until_s - boot_time_s()

    def renew(self) -> None:
        """Hold the lease for its length from now on.

        Raises:
            StaleEpochError: it has run out.
            GroupStoreUnavailableError: etcd does not answer.
        """
        sent_s = boot_time_s()
        answer = self._gateway.call("/v3/lease/keepalive", {"ID": self._lease})
        if int(answer.get("result", {}).get("TTL", 0)) <= 0:
            self.valid_until_s = sent_s
            raise StaleEpochError(
                f"the lease of the writer of epoch {self.epoch} has run out, so that this member stops writing",
                epoch=self.epoch,
            )
        self.valid_until_s = sent_s + self._ttl_s

    def revoke(self) -> None:
        """Give the lease up. Raises GroupStoreUnavailableError."""
        self.valid_until_s = 0.0
        self._gateway.call("/v3/lease/revoke", {"ID": self._lease})


class EtcdGroupStore:
    """A `GroupStore`. Thread-safe. Every method raises GroupStoreUnavailableError.

    group   name of the group in etcd
    known   learns every state that etcd shows
    ttl_ms  length of the writer's lease
    """

    def __init__(self, gateway: EtcdGateway, group: str, known: KnownState, *, ttl_ms: int) -> None:
        self._gateway = gateway
        self._known = known
        self._ttl_s = ttl_ms / 1000
        self._folder = f"/tidemark/{group}"
        self._state, self._writer, self._yield = (
            encoded(f"{self._folder}/{name}".encode()) for name in ("state", "writer", "yield")
        )
        first, end = f"{self._folder}/", f"{self._folder}0"  # 0 comes after /
        self._all_keys = {"key": encoded(first.encode()), "range_end": encoded(end.encode())}

    def look(self) -> Seen:
        """Return the present state and lease."""
        # not a read-only transaction, which can crash a paused etcd (https://github.com/etcd-io/etcd/issues/14891)
        answer = self._gateway.call("/v3/kv/range", self._all_keys)
        found = {one["key"]: one for one in answer.get("kvs", [])}
        state, writer, asked = (found.get(key) for key in (self._state, self._writer, self._yield))
        try:
            return Seen(
                self._learned(state),
                None if writer is None else decoded(writer["value"]).decode(),
                0 if asked is None else int(decoded(asked["value"])),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise GroupStoreUnavailableError(
                f"a key below {self._folder} in etcd has a value that is not Tidemark's ({error}): give the group "
                "another name (TIDEMARK_GROUP), or delete the keys"
            ) from error

    def read(self) -> GroupState | None:
        """Return the present state; None before the first election."""
        return self.look().state

    def propose(self, state: GroupState) -> GroupState:
        """Store *state* if the present state has its revision. Return the present state."""
        answer = self._gateway.call(
            "/v3/kv/txn",
            {
                "compare": [self._is_unchanged(state)],
                "success": [_put(self._state, encode_state(state)), _range(self._state)],
                "failure": [_range(self._state)],
            },
        )
        present = self._learned(_found(answer, -1))
        assert present is not None, "a proposed state has an earlier one"
        return present

    def elect(self, state: GroupState, *, holder: str | None) -> tuple[GroupState, WriterLease] | None:
        """Store *state*, which names its writer, and give the lease to it; None if another member was faster.

        holder: of the lease, as it was seen: None, or this member in an earlier life.
        """
        assert state.writer is not None
        sent_s = boot_time_s()
        lease = str(self._gateway.call("/v3/lease/grant", {"TTL": str(math.ceil(self._ttl_s))})["ID"])
        writer = {**_put(self._writer, state.writer.encode())["request_put"], "lease": lease}
        answer = self._gateway.call(
            "/v3/kv/txn",
            {
                "compare": [self._is_unchanged(state), self._is_held_by(holder)],
                "success": [_put(self._state, encode_state(state)), {"request_put": writer}, _range(self._state)],
                "failure": [_range(self._writer), _range(self._state)],
            },
        )
        if not answer.get("succeeded"):
            present = _found(answer, 0)  # ours if the first try of this request was carried out, and its answer lost
            if present is None or str(present.get("lease")) != lease:
                self._gateway.call("/v3/lease/revoke", {"ID": lease})
                return None
        elected = self._learned(_found(answer, -1))
        assert elected is not None
        return elected, WriterLease(self._gateway, lease, elected.epoch, sent_s=sent_s, ttl_s=self._ttl_s)

    def ask_to_yield(self, epoch: int) -> None:
        """Ask the writer of *epoch* to give up its role; it does so if it is cut from its replicas."""
        lease = str(self._gateway.call("/v3/lease/grant", {"TTL": str(math.ceil(self._ttl_s))})["ID"])
        self._gateway.call("/v3/kv/put", {"key": self._yield, "value": encoded(b"%d" % epoch), "lease": lease})

    def close(self) -> None:
        """Close the connections."""
        self._gateway.close()

    def _is_unchanged(self, state: GroupState) -> _Json:
        return {"key": self._state, "target": "MOD", "result": "EQUAL", "mod_revision": str(state.revision)}

    def _is_held_by(self, holder: str | None) -> _Json:
        if holder is None:
            return {"key": self._writer, "target": "CREATE", "result": "EQUAL", "create_revision": "0"}
        return {"key": self._writer, "target": "VALUE", "result": "EQUAL", "value": encoded(holder.encode())}

    def _learned(self, found: _Json | None) -> GroupState | None:
        if found is None:
            return None
        state = replace(decode_state(decoded(found["value"])), revision=int(found["mod_revision"]))
        self._known.adopt(state)
        return state


def boot_time_s() -> float:
    """Return the seconds since the machine's start, also those in which it slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _range(key: str) -> _Json:
    return {"request_range": {"key": key}}


def _put(key: str, value: bytes) -> _Json:
    return {"request_put": {"key": key, "value": encoded(value)}}


def _found(answer: _Json, number: int) -> _Json | None:
    """Return the only key of a transaction's range; None if it does not exist."""
    found = answer["responses"][number]["response_range"].get("kvs", [])
    return found[0] if found else None
