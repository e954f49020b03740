"""What is known of one directory that a broker and Tidemark open in turn: `their_leg` and `our_leg` share it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

from .counts import COUNTS
from .file_sizes import FileSizes
from .history import History, Queue, Reading
from .messages import Messages
from .questions import Answers, Questions, ask, make_questions
from .real_broker import RealBroker
from .rocket_client import Answer
from .sides import Side, read_all

SIZES = (
    FileSizes(),
    FileSizes(512 << 10, 4_000, 4_600, 5_000, 20_000),
    FileSizes(2 << 20, 2_000, 2_300, 300, 900),
    FileSizes(1 << 20, 6_000_000, 13_800_000, 100, 400),
)


@dataclass
class Seen:
    """What a broker told at the end of its leg. end: of the log; units: by queue file, of records below it."""

    reading: Reading
    questions: Questions
    answers: Answers
    end: int = 0
    units: dict[str, bytes] = field(default_factory=dict)
    is_recovered: bool = False  # told by a broker that recovered a copy of the directory


class Round:
    """The directory, its sizes, everything that was sent to it, and what each side told last."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.root = folder / "store"
        self.root.mkdir(parents=True)
        self.draw = random.Random(seed)
        self.messages = Messages(seed)
        self.history = History()
        self.sizes = SIZES[seed % len(SIZES)]
        self.broker = RealBroker(self.root, folder / "broker", sizes=self.sizes)
        self.theirs: Seen | None = None
        self.ours: Reading | None = None

    def read(self, side: Side) -> Reading:
        """Every message *side* tells, each checked against what was sent."""
        reading = read_all(side)
        COUNTS["messages compared with what was sent"] += self.history.check(reading)
        return reading

    def look(self, side: Side) -> Seen:
        """Everything *side* tells."""
        reading = self.read(side)
        questions = make_questions(reading, self.draw)
        COUNTS["questions put to both sides"] += sum(len(kind) for kind in questions)
        return Seen(reading, questions, ask(side, questions))


def check_alike(queue: Queue, told: list[Answer], before: list[Answer]) -> None:
    """One side tells every message that the other told *before*, in all fields; it may tell more behind them."""
    assert len(told) >= len(before), f"{queue}: {len(before) - len(told)} messages are gone"
    for now, then in zip(told, before, strict=False):
        differing = {name: (now.get(name), then.get(name)) for name in now | then if now.get(name) != then.get(name)}
        assert not differing, f"{queue}, {then['queue_offset']}: told otherwise: {differing}"
    COUNTS["messages told alike by both sides"] += len(before)
