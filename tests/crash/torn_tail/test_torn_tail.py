"""The last batch, torn at every byte above the durable floor: the log ends before it, and continues there."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.crash.simulated_disk.boots import FIRST, NEXT, booted
from tests.crash.simulated_disk.checker import Checker
from tests.crash.simulated_disk.tree import Tree, put_tree
from tidemark.store.checkpoint import CHECKPOINT_SIZE

from .layout import BEFORE, KINDS, SETTINGS, Layout, Spoiling, lay_out, spoilings

pytestmark = pytest.mark.crash

PLACES = list(itertools.product(KINDS, BEFORE))


def with_floor(tree: Tree, floor: int) -> Tree:
    """Set the floor in the checkpoint on disk, as if its last page was not written back."""
    return Tree(
        {**tree.files, "checkpoint": bytes(32) + floor.to_bytes(8, "big") + bytes(CHECKPOINT_SIZE - 40)}, tree.folders
    )


def check_all(layout: Layout, chosen: Sequence[Spoiling], folder: Path) -> None:
    """Check that each is a torn tail, after a kill and a power cut: nothing of the batch is kept, all else holds."""
    checker = Checker(folder / "state", folder / "scratch", **SETTINGS)
    for number, (way, at, tree) in enumerate(chosen):
        put_tree(with_floor(tree, layout.start), checker.root)
        with booted(NEXT if number % 2 else FIRST):
            try:
                checker.check(copy.deepcopy(layout.promises), build_first=number % 4 < 2)
                assert not any(message.number == 9 for message in checker.recovered_messages), (
                    "a part of the batch was kept"
                )
            except Exception as error:
                raise AssertionError(f"{way} at byte {at - layout.start}") from error


@pytest.mark.parametrize(("kind", "place"), PLACES)
def test_a_batch_torn_at_some_bytes_is_cut(kind: str, place: str, folder: Path) -> None:
    """The quick part tears every 41st byte, so that each kind of damage meets many fields."""
    layout = lay_out(folder / "made", kind, place)
    check_all(layout, list(spoilings(layout))[::41], folder)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "place"), PLACES)
def test_a_batch_torn_at_every_byte_is_cut(kind: str, place: str, folder: Path, tell: Callable[[str], None]) -> None:
    """The batch is cut, zeroed and flipped."""
    layout = lay_out(folder / "made", kind, place)
    chosen = list(spoilings(layout))
    check_all(layout, chosen, folder)
    tell(f"torn tail, {kind} {place}: {layout.end - layout.start} bytes, {len(chosen)} states, all cut")


def test_a_whole_unanswered_batch_is_kept(folder: Path) -> None:
    """The stores are the same, without damage: the batch was never answered, and is recovered."""
    for kind, place in PLACES:
        layout = lay_out(folder / kind / place, kind, place)
        checker = Checker(folder / "state", folder / "scratch", **SETTINGS)
        put_tree(with_floor(layout.tree, layout.start), checker.root)
        with booted(NEXT):
            checker.check(copy.deepcopy(layout.promises))
        assert [m.number for m in checker.recovered_messages][-1] == 9
