"""Candidacy: whether this member may stand for election, according to the state of the group that it knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from tidemark.replication.group_state import GroupState
from tidemark.replication.known_state import KnownState
from tidemark.replication.member_names import name_of

from .leadership import Follower, first_state
from .other_members import Described, is_writer, newest_state


class NotElectable(NamedTuple):
    """Why a member must not stand now: a name for the log, and the facts."""

    reason: str
    facts: Mapping[str, object]


class Candidacy:
    """One member's candidacy.

    known   the newest state that this member has heard of
    others  number of the other members
    """

    def __init__(self, identity: str, known: KnownState, others: int) -> None:
        self._identity = identity
        self._known = known
        self._others = others

    def state_to_replace(
        self, stored: GroupState | None, answers: Sequence[Described], follower: Follower
    ) -> GroupState | NotElectable:
        """Return the state that an election of this member is to replace.

        stored: the state in the group store, read after the answers; None before the first election
        """
        newest, newest_epoch = self.newest(answers, follower)
        if stored is None:
            return self._first(newest, newest_epoch, answers, follower)
        if newest_epoch > stored.epoch or (newest is not None and newest.age > stored.age):
            remedy = "etcd was restored from a copy: promote a member"
            facts = {"epoch": stored.epoch, "known_epoch": newest_epoch, "remedy": remedy}
            return NotElectable("group_store_too_old", facts)
        return self._if_complete(stored)

    def newest(self, answers: Sequence[Described], follower: Follower) -> tuple[GroupState | None, int]:
        """Return the newest state of the group that a member knows, and the newest epoch, which must not be reused."""
        newest = newest_state(self._known.read(), answers)
        promised = [follower.promised, *(answer.promised_epoch for answer in answers)]
        return newest, max([*promised, 0 if newest is None else newest.epoch])

    def _if_complete(self, state: GroupState) -> GroupState | NotElectable:
        if state.can_elect(self._identity):
            return state
        names = sorted(map(name_of, state.in_sync | state.eligible))
        return NotElectable("not_electable", {"epoch": state.epoch, "electable": names})

    def _first(
        self, newest: GroupState | None, newest_epoch: int, answers: Sequence[Described], follower: Follower
    ) -> GroupState | NotElectable:
        """Return the state for the first election, which needs all members: no member may hide a longer log."""
        if len(answers) < self._others or any(map(is_writer, answers)):
            facts = {"answered": 1 + len(answers), "members": 1 + self._others, "remedy": "or promote"}
            return NotElectable("first_election_waits", facts)
        if newest is not None:
            return self._if_complete(replace(newest, revision=0, epoch=newest_epoch))
        longer = [answer.member for answer in answers if answer.end_offset > follower.log_end]
        return NotElectable("longer_log_found", {"members": longer}) if longer else first_state(self._identity)

    def rank(self, state: GroupState, answers: Sequence[Described], follower: Follower) -> int:
        """Return how many other candidates go first: the one that the state names, and then longer logs."""

        def order(identity: str, end: int) -> tuple[bool, int, str]:
            return identity != state.writer, -end, identity

        ours = order(self._identity, follower.log_end)
        candidates = [one for one in answers if state.can_elect(one.identity) or not state.epoch]
        return sum(order(one.identity, one.end_offset) < ours for one in candidates)
