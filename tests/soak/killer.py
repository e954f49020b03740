"""Killer: disturbs the services at random, and restarts ended ones.

The disturbances are cards of a shuffled deck: each pair of targets and action comes once before any comes again, so
that a short run has had all of them.
"""

from __future__ import annotations

import contextlib
import random
import signal
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import psutil

from tests.soak.history import Fault, HistoryFile
from tests.soak.stack import CONSUMERS, Member, Stack
from tidemark.local.local_stack import PIPELINE, QUERY, WRITER

ALL = (WRITER, PIPELINE, QUERY)
KILL, PAUSE, TERMINATE = "kill", "pause", "terminate"
KILL_DRIVER, KILL_WORKER, PAUSE_WORKER = "kill driver", "kill worker", "pause worker"
KILL_SPARK, KILL_JVM, KILL_WORKERS = "kill spark", "kill jvm", "kill workers"
SURVIVED = (KILL_SPARK, KILL_JVM, KILL_WORKER, KILL_WORKERS)  # by the pipeline, whose understudy builds meanwhile


class Card(NamedTuple):
    """A disturbance and its targets."""

    targets: tuple[str, ...]
    action: str


DECK = (
    *(Card((name,), action) for name in ALL for action in (KILL, PAUSE, TERMINATE)),
    *(Card((PIPELINE,), action) for action in (KILL_DRIVER, *SURVIVED, PAUSE_WORKER)),
    *(Card((name,), KILL) for name in (WRITER, WRITER, QUERY)),
    Card((WRITER,), PAUSE),
    *(Card((CONSUMERS,), action) for action in (KILL, KILL, PAUSE, TERMINATE)),
    Card((CONSUMERS, QUERY), KILL),
    Card((WRITER, PIPELINE), KILL),
    Card((WRITER, QUERY), KILL),
    Card((PIPELINE, QUERY), KILL),
    Card(ALL, KILL),
    Card(ALL, PAUSE),
    Card(ALL, TERMINATE),
)
_MEAN_GAP_S = 2.0
_LONGEST_DOWN_S, _LONGEST_PAUSE_S = 1.5, 3.0
_PATIENCE = 0.8  # share of cards that wait for services which have been working for a while
_LONGEST_PEACE_S = 10.0


class Killer:
    """A thread that plays cards until `rest`, and keeps everything running until `stop`."""

    def __init__(self, stack: Stack, choice: random.Random, history: HistoryFile) -> None:
        self._stack = stack
        self._choice = choice
        self._history = history
        self._deck: list[Card] = []
        self._due: dict[str, float] = {}  # services that are down, and their start times
        self._at_work_since: dict[str, float] = {}
        self._resting, self._stopping = threading.Event(), threading.Event()
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="killer")

    def start(self) -> None:
        """Start."""
        self._thread.start()

    def rest(self) -> None:
        """Stop disturbing, but restart services that end because of earlier disturbances."""
        self._resting.set()

    def stop(self) -> None:
        """Stop; everything is running when this returns."""
        self._resting.set()
        self._stopping.set()
        self._thread.join()
        self._due.clear()
        self._revive()

    def _run(self) -> None:
        try:
            next_card = time.monotonic() + self._gap()
            while not self._stopping.wait(0.05):
                self._revive()
                if time.monotonic() >= next_card and not self._resting.is_set():
                    self._play(self._draw())
                    next_card = time.monotonic() + self._gap()
        except BaseException as error:
            self.failure = error

    def _gap(self) -> float:
        return min(self._choice.expovariate(1 / _MEAN_GAP_S), 3 * _MEAN_GAP_S)

    def _revive(self) -> None:
        """Restart ended services that are due; record spontaneous ends."""
        now = time.monotonic()
        for name, member in self._stack.members.items():
            if member.is_running:
                if name not in self._at_work_since and member.is_at_work:
                    self._at_work_since[name] = now
                continue
            self._at_work_since.pop(name, None)
            if name not in self._due:
                if not member.asked_to_end:
                    status = member.service.exit_status
                    self._note((name,), "ended", f"exit status {status}; see {member.service.log_path}")
                self._due[name] = now + self._choice.uniform(0, _LONGEST_DOWN_S)
            if now >= self._due[name] or self._resting.is_set():
                del self._due[name]
                member.start()

    def _draw(self) -> Card:
        """Return the next card with suitable targets: running, and mostly working, not still starting."""
        if not self._deck:
            self._deck = self._choice.sample(DECK, len(DECK))
        patient = self._choice.random() < _PATIENCE
        for at, card in enumerate(self._deck):
            if all(self._is_worth_it(self._stack.members[name], patient=patient) for name in card.targets):
                return self._deck.pop(at)
        return Card((), KILL)

    def _is_worth_it(self, member: Member, *, patient: bool) -> bool:
        if not patient:
            return member.is_running
        since = self._at_work_since.get(member.name)
        return since is not None and time.monotonic() - since > self._choice.uniform(0, _LONGEST_PEACE_S)

    def _play(self, card: Card) -> None:
        if not card.targets:
            return
        self._note(card.targets, card.action)
        members = [self._stack.members[name] for name in card.targets]
        actions: dict[str, Callable[[list[Member]], None]] = {
            KILL: lambda members: _each(members, Member.kill_all),
            TERMINATE: self._terminate,
            PAUSE: self._pause,
            KILL_DRIVER: lambda members: _each(members, Member.kill_driver),
            KILL_SPARK: lambda members: self._kill_parts(members, "spark"),
            KILL_JVM: lambda members: self._kill_parts(members, "jvm"),
            KILL_WORKERS: lambda members: self._kill_parts(members, "worker"),
            KILL_WORKER: self._kill_worker,
            PAUSE_WORKER: self._pause_worker,
        }
        actions[card.action](members)

    def _terminate(self, members: list[Member]) -> None:
        _each(members, Member.terminate)
        for member in members:
            if member.wait() is None:
                self._note((member.name,), "ended", "not at all, after SIGTERM")
                member.kill_all()

    def _pause(self, members: list[Member]) -> None:
        for member in members:
            member.signal_all(signal.SIGSTOP)
        self._resting.wait(self._choice.uniform(0.1, _LONGEST_PAUSE_S))
        for member in members:
            member.signal_all(signal.SIGCONT)

    def _kill_parts(self, members: list[Member], kind: str) -> None:
        for member in members:
            for process in member.parts(kind):
                _signal(process, signal.SIGKILL)

    def _kill_worker(self, members: list[Member]) -> None:
        for member in members:
            if workers := member.parts("worker"):
                _signal(self._choice.choice(workers), signal.SIGKILL)

    def _pause_worker(self, members: list[Member]) -> None:
        for member in members:
            if workers := member.parts("worker"):
                worker = self._choice.choice(workers)
                _signal(worker, signal.SIGSTOP)
                self._resting.wait(self._choice.uniform(0.1, _LONGEST_PAUSE_S))
                _signal(worker, signal.SIGCONT)

    def _note(self, targets: tuple[str, ...], action: str, detail: str = "") -> None:
        self._history.add(Fault(targets, action, time.monotonic(), detail))


def _each(members: list[Member], action: Callable[[Member], None]) -> None:
    """Run the action concurrently, one thread each."""
    threads = [threading.Thread(target=action, args=(member,)) for member in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)
