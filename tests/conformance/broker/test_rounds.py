"""One directory, two implementations: a real broker and Tidemark open it in turn, and each finds the other's messages.

CONFORMANCE_ROUNDS  rounds of each kind, default 3
CONFORMANCE_SEED    of the first round, default 1; the next ones count on
CONFORMANCE_KEEP    a folder: directories of the rounds are kept below it, by name and seed
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from .counts import COUNTS, SEEDS
from .our_leg import Ending, check_directory, our_leg
from .round import Round
from .their_leg import their_leg

pytestmark = [pytest.mark.conformance, pytest.mark.exhaustive, pytest.mark.timeout(1200)]
_FIRST_SEED = int(os.environ.get("CONFORMANCE_SEED", "1"))
_ROUNDS = range(_FIRST_SEED, _FIRST_SEED + int(os.environ.get("CONFORMANCE_ROUNDS", "3")))
_ENDINGS = list(Ending)


@pytest.fixture
def this(request: pytest.FixtureRequest, tmp_path: Path, seed: int) -> Iterator[Round]:
    """Return a new round."""
    name = f"{request.function.__name__.removeprefix('test_')}-{seed}"
    keep = os.environ.get("CONFORMANCE_KEEP")
    folder = Path(keep).absolute() / name if keep else tmp_path
    if keep:
        shutil.rmtree(folder, ignore_errors=True)
    this = Round(folder, seed)
    try:
        yield this
    finally:
        this.broker.close()
    COUNTS["rounds"] += 1
    SEEDS.append(name)


@pytest.mark.parametrize("seed", _ROUNDS)
def test_broker_and_tidemark_alternate_starting_with_the_broker(this: Round, seed: int) -> None:
    """The order is broker, Tidemark, broker, Tidemark: one of the broker's legs ends in a kill."""
    their_leg(this, kill=seed % 2 == 0)
    our_leg(this, _ENDINGS[seed % 4], rebuild=True, kill_pipeline=False)
    their_leg(this, kill=seed % 2 == 1)
    our_leg(this, Ending.CLEAN, rebuild=False, kill_pipeline=True)
    check_directory(this)


@pytest.mark.parametrize("seed", _ROUNDS)
def test_broker_and_tidemark_alternate_starting_with_tidemark(this: Round, seed: int) -> None:
    """The order is Tidemark, broker, Tidemark, broker, Tidemark."""
    our_leg(this, _ENDINGS[(seed + 1) % 4], rebuild=False, kill_pipeline=True)
    their_leg(this, kill=seed % 2 == 1)
    our_leg(this, _ENDINGS[(seed + 2) % 4], rebuild=False, kill_pipeline=False)
    their_leg(this, kill=False)
    our_leg(this, Ending.CLEAN, rebuild=True, kill_pipeline=False)
    check_directory(this)
