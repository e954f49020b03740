"""One run: record a workload, make the states that a crash in it may leave, open and check each of them."""

from __future__ import annotations

import copy
import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tidemark.store.storage import DiskStorage, Storage

from .boots import FIRST, LAST, NEXT, booted
from .checker import Checker
from .in_process import SEGMENT_SIZE, InProcessWriter
from .page_cache import PAGE_SIZE
from .pipeline import drain
from .recorder import Recorder
from .states import Counts, CrashState, crash_states
from .tree import Tree, put_tree
from .workloads import record

SEED = int(os.environ.get("CRASH_SEED", "1"))
STATES = int(os.environ.get("CRASH_STATES", "100"))
_SAMPLES = 16  # of each crash point with too many states, in addition to the extremes


class Run(NamedTuple):
    """Parameters of a run.

    most   opened states, chosen by the seed if there are more
    again  number of these that are crashed once more during recovery
    """

    steps: Sequence[str]
    flush_mode: str = "sync"
    page_size: int = PAGE_SIZE
    seed: int = SEED
    most: int = STATES
    again: int = 0

    def __str__(self) -> str:
        return f"{', '.join(self.steps)} ({self.flush_mode}, pages of {self.page_size}, seed {self.seed})"


class PromiseBroken(AssertionError):  # noqa: N818 - a finding
    """A state in which a promise is broken."""


def explore(run: Run, folder: Path, storage: Storage | None = None) -> Counts:
    """Run, and raise PromiseBroken for the first broken state. CRASH_KEEP, a folder, keeps it.

    The services' threads interleave differently in each run: the seed selects from the recorded trace.
    """
    return _Exploration(run, folder).go(storage)


def keep(tree: Tree) -> str:
    """Save a broken state for inspection, and return its folder."""
    target = os.environ.get("CRASH_KEEP")
    return f"kept in {put_tree(tree, Path(target))}" if target else "CRASH_KEEP=FOLDER keeps the state"


class _Exploration:
    def __init__(self, run: Run, folder: Path) -> None:
        self._run = run
        self._folder = folder
        self._settings: dict[str, Any] = {
            "commit_log_segment_size_bytes": SEGMENT_SIZE,
            "flush_mode": run.flush_mode,
        }
        self._checker = Checker(folder / "state", folder / "scratch", **self._settings)
        self._source = random.Random(run.seed)
        self._counts = Counts()

    def go(self, storage: Storage | None) -> Counts:
        shutil.rmtree(self._folder, ignore_errors=True)
        recorder, first = record(self._folder / "recorded", self._run.steps, storage, **self._settings)
        self._recorder = recorder
        states = self._choose(recorder, first=first, most=self._run.most)
        for number, state in enumerate(states):
            boot = NEXT if state.power_cut else FIRST
            self._check(state, boot, str(state), build_first=number % 2 == 0, lossy=state.power_cut)
        for state in self._source.sample(states, min(self._run.again, len(states))):
            self._crash_again(state)
        return self._counts

    def _choose(self, recorder: Recorder, *, most: int, **more: Any) -> list[CrashState]:
        found = crash_states(
            recorder, self._counts, seed=self._run.seed, samples=_SAMPLES, page_size=self._run.page_size, **more
        )
        states = list(found)
        chosen = sorted(self._source.sample(range(len(states)), min(most, len(states))))
        self._counts.opened += len(chosen)
        return [states[i] for i in chosen]

    def _check(self, state: CrashState, boot: str, place: str, *, build_first: bool, lossy: bool) -> None:
        put_tree(state.tree, self._checker.root)
        try:
            with booted(boot):
                self._checker.check(
                    copy.deepcopy(state.promises),
                    lossy=lossy and self._run.flush_mode == "async",
                    build_first=build_first,
                )
        except Exception as error:
            raise PromiseBroken(f"{self._run}: {place}: {error!r}; {keep(state.tree)}") from error

    def _crash_again(self, state: CrashState) -> None:
        """Recovery and the first build after it are a trace of their own, which is cut too.

        After a power cut only their own writes are unsynced; after a kill also the earlier ones.
        """
        put_tree(state.tree, self._checker.root)
        boot = NEXT if state.power_cut else FIRST
        was_whole = not state.power_cut and not state.choice
        recorder = Recorder(self._checker.root, after=(self._recorder, state.prefix) if was_whole else None)
        first = len(recorder.trace)
        with booted(boot), recorder:
            writer = InProcessWriter(recorder.root, recorder.storage(DiskStorage()), **self._settings)
            drain(recorder.root, recorder.storage(DiskStorage()))
            end = len(recorder.trace)
            writer.abandon()
        del recorder.trace[end:]
        known = None if was_whole else state.promises
        for number, later in enumerate(self._choose(recorder, most=self._run.most // 4, first=first, known=known)):
            lossy = state.power_cut or later.power_cut
            place = f"{state}, then {later}"
            self._check(later, LAST if later.power_cut else boot, place, build_first=number % 2 == 0, lossy=lossy)
