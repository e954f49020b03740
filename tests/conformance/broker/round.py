"""The state of one directory that a broker and Tidemark open in turn, shared by `their_leg` and `our_leg`."""

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
    """A broker's answers at the end of its leg. end: of the log; units: by queue file, of records below it."""

    reading: Reading
    questions: Questions
    answers: Answers
    end: int = 0
    units: dict[str, bytes] = field(default_factory=dict)
    is_recovered: bool = False  # the answers of a broker that recovered a copy of the directory


class Round:
    """The directory, its sizes, all sent messages, and each side's last answers."""

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
        """Return every message of *side*, each compared with the sent one."""
        reading = read_all(side)
        COUNTS["messages compared with the sent ones"] += self.history.check(reading)
        return reading

    def look(self, side: Side) -> Seen:
        """Return everything that *side* answers."""
        reading = self.read(side)
        questions = make_questions(reading, self.draw)
        COUNTS["questions put to both sides"] += sum(len(kind) for kind in questions)
        return Seen(reading, questions, ask(side, questions))


def check_alike(queue: Queue, told: list[Answer], before: list[Answer]) -> None:
    """Check that one side returns every message that the other returned *before*, in all fields; more may follow."""
    assert len(told) >= len(before), f"{queue}: {len(before) - len(told)} messages are missing"
    for now, then in zip(told, before, strict=False):
        differing = {name: (now.get(name), then.get(name)) for name in now | then if now.get(name) != then.get(name)}
        assert not differing, f"{queue}, {then['queue_offset']}: the fields {differing} differ"
    COUNTS["messages equal on both sides"] += len(before)
