"""One soak: a stack under load and faults for some time, then rest, a final reading, and judgement."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.peers.toolchain import ToolchainMissingError
from tests.soak.checker import check_facts
from tests.soak.consumers import read_everything
from tests.soak.drain import drain_groups, read_dead_letters
from tests.soak.facts import Facts, Violation
from tests.soak.groups.plan import SUBSCRIPTIONS
from tests.soak.history import OK, UNKNOWN, HistoryFile, read_histories
from tests.soak.killer import Killer
from tests.soak.load import Load, create_topics
from tests.soak.questions import Questions
from tests.soak.report import report
from tests.soak.rocketmq_clients import RocketmqClients
from tests.soak.stack import Stack
from tests.soak.store_check import check_store
from tidemark.local.local_stack import PIPELINE

_RECOVERY_S = 600.0  # after the faults, until everything is answered and visible: a limit for events that never come
_FIRST_START_S = 600.0
HISTORY = "history.jsonl"
Say = Callable[[str], None]


def run(
    folder: Path, seconds: float, seed: str, say: Say, *, faults: bool = True, has_java: bool = False
) -> list[Violation]:
    """Soak a new store below *folder* for *seconds*, judge the clients' observations, and print counts by *say*.

    faults: kill, pause and stop the processes. has_java: RocketMQ's Java client takes part. Where it is not available,
    the run continues without it and prints the reason.
    """
    choice = random.Random(seed)
    stack = Stack(folder, seed)
    history = HistoryFile(folder / HISTORY)
    for subscription in SUBSCRIPTIONS:
        history.add(subscription)
    violations: list[Violation] = []
    java = _java_clients(stack, folder, say) if has_java else None
    try:
        say("starting writer, pipeline and query")
        stack.start()
        create_topics(stack.writer_address)
        stack.start_consumers()
        _wait_until_at_work(stack)
        if java is not None:
            java.start()
        violations += _soak(stack, history, java, seconds, seed, choice, say, faults=faults)
        violations += _stop(stack)
    finally:
        if java is not None:
            java.close()
        stack.kill()
        history.close()
    say("judging")
    facts = Facts(read_histories(folder))
    violations += _never_answered(facts)
    violations += check_facts(facts)
    violations += check_store(stack.store, folder)
    for line in (*report(facts, stack.logs), *([java.report()] if java is not None else [])):
        say(line)
    return violations


def _java_clients(stack: Stack, folder: Path, say: Say) -> RocketmqClients | None:
    try:
        return RocketmqClients(stack, folder / "java")
    except ToolchainMissingError as error:
        say(f"without RocketMQ's Java client: {error}")
        return None


def _wait_until_at_work(stack: Stack) -> None:
    """Wait until everything runs before faults begin: a soak of a broken stack shows nothing."""
    deadline = time.monotonic() + _FIRST_START_S
    pipeline = stack.members[PIPELINE]
    while not pipeline.is_at_work:
        if not pipeline.is_running or time.monotonic() > deadline:
            raise TimeoutError(f"the pipeline does not start: {pipeline.service.last_lines(5)}")
        time.sleep(0.1)


def _soak(
    stack: Stack,
    history: HistoryFile,
    java: RocketmqClients | None,
    seconds: float,
    seed: str,
    choice: random.Random,
    say: Say,
    *,
    faults: bool,
) -> list[Violation]:
    load = Load(stack, history, seconds, seed)
    killer = Killer(stack, choice, history)
    load.start()
    if not faults:
        killer.rest()
    killer.start()
    try:
        say(f"load and faults for {seconds:.0f} s" if faults else f"load without faults for {seconds:.0f} s")
        time.sleep(seconds)
        killer.rest()
        say("no more faults: waiting until every append is answered and visible")
        load.stop_producers(_RECOVERY_S)
        violations = _wait_until_visible(stack, history)
        say("waiting until every group has every message")
        drain_groups(stack.query_url, history)
        violations += [] if java is None else java.finish()
    finally:
        killer.stop()  # no other code restarts stopped services
    load.stop_consumers()
    for form in ("json", "records"):
        read_everything(stack.query_url, history, form)
    read_dead_letters(stack.query_url, history)
    if killer.failure is not None:
        raise killer.failure
    return violations + [Violation("client failed", f"{name}: {error!r}") for name, error in load.failures]


def _wait_until_visible(stack: Stack, history: HistoryFile) -> list[Violation]:
    """Wait for recovery without intervention."""
    questions = Questions("referee", stack.query_url, history)
    deadline = time.monotonic() + _RECOVERY_S
    while True:
        answer = questions.watermark()
        is_over = answer.outcome == OK and answer.watermark == answer.committed
        if is_over or time.monotonic() > deadline:
            questions.close()
            text = f"{_RECOVERY_S:.0f} s after the last fault: {answer}"
            return [] if is_over else [Violation("no recovery", text)]
        time.sleep(0.2)


def _never_answered(facts: Facts) -> list[Violation]:
    """Report appends without an outcome: a client that keeps retrying must learn it."""
    open_ends = [append for append in facts.appends if append.outcome == UNKNOWN]
    return [Violation("no recovery", f"{append.contents[0]}: {append.reason}") for append in open_ends]


def _stop(stack: Stack) -> list[Violation]:
    """Report services that SIGTERM does not end with exit status 0, and processes that are left."""
    faults = [f"{name} ended with {status}" for name, status in stack.stop().items() if status != 0]
    faults += [f"{name} is not running" for name, member in stack.members.items() if not member.asked_to_end]
    faults += [f"left behind: {process}" for process in stack.left_behind()]
    return [Violation("stop", text) for text in faults]
