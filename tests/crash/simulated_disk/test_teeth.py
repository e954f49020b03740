"""The suite detects code that does not keep its promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.torn_tail.test_damaged_tail import flip_all

from .explore import PromiseBroken, Run, explore
from .mutations import MUTATIONS, drop_position_check

pytestmark = pytest.mark.crash

SEEN_BY = {
    "no fdatasync": Run(("append",)),
    "no fdatasync of the log": Run(("append",)),
    "no fsync of folders": Run(("roll", "roll")),
    "no sync of a new queue's name": Run(("build",)),
    "no sync of the journal": Run(("append three",)),
    "publish before build": Run(("build",), page_size=512),
    "durable mark before sync": Run(("build",), page_size=512),
}


_QUICK = ("no fdatasync of the log", "no sync of the journal", "publish before build")


@pytest.mark.parametrize(
    "mutation", [name if name in _QUICK else pytest.param(name, marks=pytest.mark.exhaustive) for name in MUTATIONS]
)
def test_the_suite_detects_each_mutation(mutation: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state with a broken promise is found; without the mutation there is none."""
    with monkeypatch.context() as patch:
        storage = MUTATIONS[mutation](patch)
        with pytest.raises(PromiseBroken):
            explore(SEEN_BY[mutation], folder, storage)


@pytest.mark.exhaustive
@pytest.mark.parametrize("run", sorted(set(SEEN_BY.values()), key=str), ids=str)
def test_the_suite_finds_nothing_without_mutations(run: Run, folder: Path) -> None:
    """The runs are the same, over the real code."""
    explore(run, folder)


@pytest.mark.exhaustive
def test_the_suite_detects_missing_position_checks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record with another PHYSICALOFFSET is accepted: the flips of that field are not detected."""
    drop_position_check(monkeypatch)
    with pytest.raises(AssertionError, match="physical_offset"):
        flip_all("single record", "in the middle", folder, every=1, built=1 << 30)
