"""A group of members whose rules are those of `tidemark.replication`, under random schedules.

No clock is trusted: the lease may end at any step, and a writer that lost it continues as long as it likes. Requests to
the group store and its answers are lost and overtake each other, streams break, and members crash and lose any part of
their bytes that are not synced. One byte of a log is one batch. After every step no acknowledged batch may be lost,
doubled or changed in a member that may become the writer, and no member may show another one.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tidemark.errors import ReplicaDivergedError, StaleEpochError
from tidemark.replication.epochs import Epochs
from tidemark.replication.group_state import GroupState
from tidemark.replication.in_sync_set import InSyncSet
from tidemark.replication.member import Member

Entry = tuple[int, int]  # epoch, value
_LOST = 0.15  # of requests and answers


class ViolationError(Exception):
    """A promise of the protocol is broken."""


@dataclass(frozen=True)
class Rules:
    """The classes that decide, and what the members' surroundings do. A mutant replaces one of them."""

    member: type[Member] = Member
    in_sync_set: type[InSyncSet] = InSyncSet
    state: type[GroupState] = GroupState
    keeps_epoch: bool = False  # the writer that the state names continues in its epoch after a restart
    wiped_keeps_identity: bool = False
    may_diverge: bool = False  # a cut below the confirm offset is not refused, but found by its consequences


@dataclass
class Session:
    """One stream from a writer to a replica, in order both ways, until it breaks."""

    writer: str
    epoch: int
    sent: int
    down: list[tuple[int, list[Entry], int]] = field(default_factory=list)  # begin, entries, committed end
    up: list[int] = field(default_factory=list)  # synced ends


@dataclass
class Node:
    """A member with its bytes. writes: as the writer of an epoch, otherwise None."""

    member: Member
    log: list[Entry] = field(default_factory=list)
    is_up: bool = True
    writes: InSyncSet | None = None
    session: Session | None = None


class Request(NamedTuple):
    """A request to the group store. epoch: the writer's, 0 for an election."""

    sender: str
    epoch: int
    wanted: GroupState


class Reply(NamedTuple):
    """An answer of the group store. is_taken: the request was; epoch: as in the request."""

    receiver: str
    epoch: int
    state: GroupState
    is_taken: bool


class World:
    """The members, the group store, and the acknowledged batches."""

    def __init__(self, seed: int, *, members: int, min_in_sync: int, rules: Rules) -> None:
        self.random = random.Random(seed)
        self.rules = rules
        self.nodes: dict[str, Node] = {}
        self.state = rules.state(1, 0, None, frozenset(), frozenset(), min_in_sync)
        for _ in range(members):
            self._add_node(f"m{len(self.nodes)}")
        self.state = replace(self.state, in_sync=frozenset(self.nodes))
        self.holder: str | None = None  # of the lease
        self.truth: list[Entry] = []  # acknowledged, in their places
        self.flying: list[Request | Reply] = []
        self.values = self.wiped = 0
        self.acknowledged = self.elections = self.cuts = self.crashes = self.changes = 0

    def _add_node(self, identity: str) -> None:
        self.nodes[identity] = Node(self.rules.member(identity))

    def run(self, steps: int) -> None:
        """Take *steps* random steps. Raises ViolationError."""
        for _ in range(steps):
            self.step()
            self.check()

    def step(self) -> None:
        """Let one member, or the group store, do one thing."""
        node = self.random.choice(list(self.nodes.values()))
        choice = self.random.random()
        if not node.is_up:
            node.is_up = self.random.random() < 0.3
        elif choice < 0.01:
            self._crash(node)
        elif choice < 0.0115:
            self._wipe(node)
        elif choice < 0.03:
            self.holder = None if self.random.random() < 0.5 else self.holder
        elif choice < 0.25:
            self._deliver()
        elif node.writes is not None:
            self._write(node, node.writes)
        elif node.session is not None:
            self._replicate(node, node.session)
        else:
            self._pick((self._follow, 2), (self._stand, 1))(node)

    def _pick(self, *choices: tuple[Callable[[Node], None], int]) -> Callable[[Node], None]:
        actions, weights = zip(*choices, strict=True)
        return self.random.choices(actions, weights)[0]  # type: ignore[no-any-return]

    # -- the group store --------------------------------------------------------------------------------------------

    def _deliver(self) -> None:
        if not self.flying:
            return
        item = self.flying.pop(self.random.randrange(len(self.flying)))
        if self.random.random() < _LOST:
            return
        if isinstance(item, Request):
            self.flying.append(self._answer(item))
        else:
            self._hear_from_store(item)

    def _answer(self, request: Request) -> Reply:
        is_election = request.epoch == 0
        is_taken = request.wanted.revision == self.state.revision and not (is_election and self.holder is not None)
        if is_taken:
            self.state = replace(request.wanted, revision=self.state.revision + 1)
            if is_election:
                self.holder = request.sender
                self.elections += 1
            else:
                self.changes += 1
        return Reply(request.sender, request.epoch, self.state, is_taken)

    def _hear_from_store(self, reply: Reply) -> None:
        node = self.nodes.get(reply.receiver)
        if node is None or not node.is_up:
            return
        if reply.epoch == 0:
            if reply.is_taken and node.member.is_elected(reply.state):
                self._promote(node, reply.state)
        elif node.writes is not None and node.writes.known.epoch == reply.epoch:
            try:
                node.writes.learn(reply.state)
            except StaleEpochError:
                self._stop_writing(node)

    # -- roles ------------------------------------------------------------------------------------------------------

    def _stand(self, node: Node) -> None:
        if self.holder is not None:
            return
        member = node.member
        if self.rules.keeps_epoch and self.state.writer == member.identity and self.state.epoch == member.promised:
            self.holder = member.identity
            self._promote(node, self.state)
            return
        wanted = member.candidacy(self.state)
        if wanted is not None:
            self.flying.append(Request(member.identity, 0, wanted))

    def _promote(self, node: Node, state: GroupState) -> None:
        found = node.member.promote(state)
        node.writes = self.rules.in_sync_set(found.known, node.member.identity, committed=found.committed)
        node.session = None

    def _stop_writing(self, node: Node) -> None:
        node.writes = None

    def _crash(self, node: Node) -> None:
        old = node.member
        del node.log[self.random.randint(old.synced, len(node.log)) :]
        node.member = self.rules.member(
            old.identity, end=len(node.log), confirm=old.confirm, promised=old.promised, epochs=old.epochs
        )
        node.is_up, node.writes, node.session = False, None, None
        if self.holder == old.identity and self.random.random() < 0.5:
            self.holder = None
        self.crashes += 1

    def _wipe(self, node: Node) -> None:
        del self.nodes[node.member.identity]
        self.wiped += 1
        keeps = self.rules.wiped_keeps_identity
        self._add_node(node.member.identity if keeps else f"w{self.wiped}")

    # -- the writer -------------------------------------------------------------------------------------------------

    def _write(self, node: Node, writes: InSyncSet) -> None:
        self._pick(
            (self._append, 6), (self._commit, 6), (self._sync, 4), (self._expand, 3), (self._shrink, 1), (self._ask, 1)
        )(node)

    def _append(self, node: Node) -> None:
        assert node.writes is not None
        if not node.writes.has_enough and self.random.random() < 0.9:
            return  # appends that were accepted before may still come
        self.values += 1
        node.log.append((node.writes.known.epoch, self.values))
        node.member.grow(len(node.log))

    def _sync(self, node: Node) -> None:
        node.member.sync(len(node.log))

    def _commit(self, node: Node) -> None:
        assert node.writes is not None
        before = node.writes.committed
        node.writes.acknowledge(node.member.identity, node.member.synced)
        end = node.writes.commit()
        for place in range(before, end):
            if place == len(self.truth):
                self.truth.append(node.log[place])
                self.acknowledged += 1
            elif self.truth[place] != node.log[place]:
                raise ViolationError(f"two batches are acknowledged at {place}")
        if self.random.random() < 0.5:
            node.member.commit(end)

    def _shrink(self, node: Node) -> None:
        assert node.writes is not None
        others = sorted(node.writes.known.in_sync - {node.member.identity})
        if others:
            self._propose(node, node.writes.remove(self.random.choice(others)))

    def _expand(self, node: Node) -> None:
        assert node.writes is not None
        start = node.member.epoch_start
        ready = [name for name in sorted(self.nodes) if node.writes.may_join(name, epoch_start=start)]
        if ready and node.writes.synced_end(ready[0]):
            self._propose(node, node.writes.add(self.random.choice(ready)))

    def _propose(self, node: Node, wanted: GroupState | None) -> None:
        if wanted is not None and node.writes is not None:
            self.flying.append(Request(node.member.identity, node.writes.known.epoch, wanted))

    def _ask(self, node: Node) -> None:
        """Read the group store, and propose a pending change again."""
        assert node.writes is not None
        self._propose(node, node.writes.pending)
        self.flying.append(Reply(node.member.identity, node.writes.known.epoch, self.state, False))

    # -- the replica ------------------------------------------------------------------------------------------------

    def _follow(self, node: Node) -> None:
        writers = [one for one in self.nodes.values() if one.is_up and one.writes is not None and one is not node]
        if not writers:
            return
        writer = self.random.choice(writers)
        assert writer.writes is not None
        epoch, before = writer.writes.known.epoch, len(node.log)
        try:
            point = node.member.follow(epoch, writer.member.epochs, len(writer.log))
        except StaleEpochError:
            self._stop_writing(writer)
            return
        except ReplicaDivergedError as error:
            if not self.rules.may_diverge:
                raise ViolationError(str(error)) from error
            return
        del node.log[point:]
        self.cuts += point < before
        node.session = Session(writer.member.identity, epoch, point)

    def _replicate(self, node: Node, session: Session) -> None:
        if self.random.random() < 0.03:
            node.session = None
            return
        self._pick((self._send, 2), (self._receive, 2), (self._acknowledge, 1), (self._hear, 2), (self._sync, 1))(node)
        if self.random.random() < 0.02:
            self._stand(node)

    def _writer_of(self, session: Session) -> Node | None:
        writer = self.nodes.get(session.writer)
        if writer is None or writer.writes is None or writer.writes.known.epoch != session.epoch:
            return None
        return writer

    def _send(self, node: Node) -> None:
        session = node.session
        assert session is not None
        writer = self._writer_of(session)
        if writer is not None and writer.writes is not None:
            end = self.random.randint(session.sent, max(session.sent, len(writer.log)))
            session.down.append((session.sent, writer.log[session.sent : end], writer.writes.committed))
            session.sent = end

    def _receive(self, node: Node) -> None:
        session = node.session
        assert session is not None
        if session.down:
            begin, entries, committed = session.down.pop(0)
            node.member.append(begin, begin + len(entries))
            node.log += entries
            node.member.commit(committed)

    def _acknowledge(self, node: Node) -> None:
        assert node.session is not None
        node.session.up.append(node.member.sync(len(node.log)))

    def _hear(self, node: Node) -> None:
        session = node.session
        assert session is not None
        writer = self._writer_of(session)
        if session.up and writer is not None and writer.writes is not None:
            writer.writes.acknowledge(node.member.identity, session.up.pop(0))

    # -- the promises -------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise ViolationError if a promise is broken."""
        for identity in self.state.in_sync | self.state.eligible:
            node = self.nodes.get(identity)  # none: its disk is gone, so it is never elected
            if node is not None and node.log[: node.member.synced][: len(self.truth)] != self.truth:
                raise ViolationError(f"{identity} may be elected, and lacks an acknowledged batch")
        for identity, node in self.nodes.items():
            member = node.member
            if not member.confirm <= member.synced <= member.end == len(node.log):
                raise ViolationError(f"{identity}: confirm {member.confirm}, synced {member.synced}, end {member.end}")
            if node.log[: member.confirm] != self.truth[: member.confirm]:
                raise ViolationError(f"{identity} shows a batch that was not acknowledged")


def epochs_are_of_bytes(epochs: Epochs, log: list[Entry]) -> bool:
    """Return True if each entry of *log* belongs to the epoch that *epochs* gives its place."""
    numbers = [0] * len(log)
    for epoch in epochs:
        numbers[epoch.start :] = [epoch.number] * (len(log) - epoch.start)
    return numbers == [number for number, _ in log]
