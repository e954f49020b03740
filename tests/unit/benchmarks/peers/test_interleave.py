"""The order of runs, and the handling of failed ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.progress import Progress

from benchmarks.peers.figures import OURS, Figure
from benchmarks.peers.interleave import Outcome, run_rounds
from benchmarks.peers.plan import plan
from benchmarks.peers.toolchain import ROCKETMQ
from benchmarks.peers.workloads import Workload

from .stand_ins import OurStandIn, Row, goal, workload


class Diary:
    """Runs that record their name and folder."""

    def __init__(self) -> None:
        self.folders: list[Path] = []
        self.names: list[str] = []

    def ours(self, key: str) -> OurStandIn:
        def run(folder: Path, _: float) -> Sequence[Row]:
            self._write(folder, "ours")
            return [Row(key, 10.0 * len(self.names))]

        return OurStandIn([key], run)

    def theirs(self, key: str, fails_at: int = 0) -> Workload:
        def run(folder: Path, _: float) -> list[Figure]:
            self._write(folder, "theirs")
            if self.names.count("theirs") == fails_at:
                raise RuntimeError("it broke")
            return [Figure(key, 1.0, "msg/s")]

        return Workload(ROCKETMQ, (key,), run)

    def _write(self, folder: Path, name: str) -> None:
        assert not list(folder.iterdir())
        (folder / "file").touch()
        self.folders.append(folder)
        self.names.append(name)


def _run(
    folder: Path,
    keys: Sequence[str],
    ours: Callable[[str], OurStandIn],
    workloads: Sequence[Workload],
    after_each: Callable[[Outcome], None] = lambda _: None,
) -> Outcome:
    benchmarks = {key: ours(key) for key in keys}
    rounds = plan([goal(key=key) for key in keys], benchmarks, workloads)
    with Progress(disable=True) as progress:
        return run_rounds(rounds, benchmarks, folder, scale=1.0, pairs=3, progress=progress, after_each=after_each)


def test_both_systems_run_alternately_in_empty_folders(tmp_path: Path) -> None:
    """The order is A B A B A B; each run has its own folder, which is removed afterwards."""
    diary = Diary()
    outcome = _run(tmp_path, ["append"], diary.ours, [diary.theirs("append")])
    assert diary.names == ["ours", "theirs"] * 3
    assert len(set(diary.folders)) == 6
    assert not list(tmp_path.iterdir())
    values = [[pair[system]["append"].value for system in (OURS, ROCKETMQ.name)] for pair in outcome.runs["append"]]
    assert values == [[10.0, 1.0], [30.0, 1.0], [50.0, 1.0]]


def test_a_failed_run_leaves_no_figures_of_its_round(tmp_path: Path) -> None:
    """The earlier pairs of that round are dropped too; the other rounds continue."""
    diary = Diary()
    outcome = _run(tmp_path, ["append", "send"], diary.ours, [diary.theirs("append", fails_at=2), workload("send")])
    assert outcome.failures == {"append": "RuntimeError: it broke"}
    assert list(outcome.runs) == ["send"]
    assert len(outcome.runs["send"]) == 3
    assert not list(tmp_path.iterdir())


def test_results_are_reported_after_each_round(tmp_path: Path) -> None:
    """A run that is interrupted keeps its finished rounds, including failed ones."""
    diary, told = Diary(), list[tuple[list[str], list[str]]]()
    _run(
        tmp_path,
        ["append", "send"],
        diary.ours,
        [diary.theirs("append", fails_at=1), workload("send")],
        after_each=lambda outcome: told.append((list(outcome.failures), list(outcome.runs))),
    )
    assert told == [(["append"], []), (["append"], ["send"])]
