"""A broker's leg: it opens the directory, returns all acknowledged messages, appends, and is stopped or killed."""

from __future__ import annotations

import threading
import time

from benchmarks.peers.broker import free_ports
from tests.bodies import body_of
from tests.pipeline_runs import end_of

from .counts import COUNTS
from .directory import check_nothing_foreign, copy_store, queue_units
from .load import BrokerLoad
from .messages import UNSETTLED
from .questions import ask, check_keys, make_questions
from .real_broker import RealBroker
from .round import Round, Seen, check_alike
from .sides import BrokerSide, Side, read_all

_SENDS = 200
_MANY_SENDS = 100_000
_TIMEOUT_S = 240
_RECOVERY_REACH_S = 4  # a broker dispatches again from 3 s before its times in `checkpoint` (docs/format.md §7)


def their_leg(this: Round, *, kill: bool) -> None:
    """Run one leg. Afterwards `this.theirs` has the broker's answers; with *kill*, those after its recovery."""
    flush = this.draw.choice(("SYNC_FLUSH", "ASYNC_FLUSH"))
    this.broker.start(settings={"flushDiskType": flush})
    load = BrokerLoad(this.history, this.messages, this.broker.client)
    if this.ours is None:
        load.create_topics()
    side = BrokerSide(this.broker.client)
    if this.ours is not None:
        _check_taken_over(this, side)
    load.append(_SENDS)
    if kill:
        _kill_while_appending(this, load)
        this.theirs = _recover_copy(this)
    else:
        time.sleep(_RECOVERY_REACH_S)
        load.append(_SENDS // 4)
        _wait_for_commits(this, side)
        this.theirs = this.look(side)
        this.broker.stop()
        assert not (this.root / "abort").exists()
        this.theirs.end = end_of(this.root)
        this.theirs.units = queue_units(this.root, below=this.theirs.end)
    COUNTS["legs of the broker"] += 1
    check_nothing_foreign(this.root)


def _check_taken_over(this: Round, side: Side) -> None:
    """Check that nothing acknowledged is lost, messages equal Tidemark's, and every key finds all of its messages."""
    assert this.ours is not None
    reading = this.read(side)
    for queue, messages in this.ours.items():
        check_alike(queue, reading[queue], messages)
    questions = make_questions(reading, this.draw)
    check_keys(questions, ask(side, questions), reading)


def _wait_for_commits(this: Round, side: Side) -> None:
    """Wait until each commit is visible, because the client sends a commit without waiting for an answer."""
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        reading = read_all(side, ("transactions",))
        shown = {body_of(message) for messages in reading.values() for message in messages}
        if this.history.committing.keys() <= shown:
            break
        assert time.monotonic() < deadline, "committed, but not visible"
        time.sleep(0.05)
    this.history.settle_commits()


def _kill_while_appending(this: Round, load: BrokerLoad) -> None:
    thread = threading.Thread(target=load.append, args=(_MANY_SENDS,))
    thread.start()
    time.sleep(this.draw.uniform(0.2, 1.5))
    this.broker.kill()
    thread.join()
    this.history.doubt_commits()
    COUNTS["kills of the broker"] += 1


def _recover_copy(this: Round) -> Seen:
    """Return a broker's answers on a copy, without its own appends there (delayed messages that are due).

    It has the killed one's address, which is part of every message's id.
    """
    end = end_of(this.root)
    copy = copy_store(this.root, this.folder / f"copy-{COUNTS['kills of the broker']}")
    ports = free_ports()[0], *this.broker.ports[1:]
    with RealBroker(copy, copy.with_name(f"{copy.name}-broker"), sizes=this.sizes, ports=ports) as recovered:
        seen = this.look(BrokerSide(recovered.client))
        recovered.stop()
    seen.end, seen.units, seen.is_recovered = end, queue_units(copy, below=end), True
    for queue, messages in seen.reading.items():
        kept = [message for message in messages if message["physical_offset"] < end]
        assert kept == messages or queue[0] in UNSETTLED, f"{queue}: the broker recovered more of the log than Tidemark"
        seen.reading[queue] = kept
    return seen
