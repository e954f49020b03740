"""Consumers and services are killed: others take over, and no acknowledged message is lost."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.peers.toolchain import ToolchainMissingError
from tests.remoting_client import RemotingClient
from tests.waiting import until
from tidemark.local.local_stack import QUERY, WRITER

from .judging import require_program, require_system
from .live import LIMIT_S, Live
from .programs import USUAL, Program
from .scenarios import BOTH
from .systems import BROKER, TIDEMARK, System

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.exhaustive,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
]
QUEUES = 4
TAKE_OVER_S = 15.0  # less than the 20 s after which clients ask for the members without a notice
SETTLE_ROUNDS = 38  # longer than the 35 s after which the service gives its list of members in any case
ROUND_S = 1.0
SAVED_S = 2.0  # the services save their members within half a second
MESSAGES = 100
Programs = dict[str, Program | ToolchainMissingError]


class Stage:
    """One topic of one system with live programs of one client."""

    def __init__(self, system: System, program: Program, folder: Path) -> None:
        self.system = system
        self.topic = f"faults-{secrets.token_hex(4)}"
        self.sent: list[str] = []
        self._program = program
        self._folder = folder
        self._programs = ExitStack()
        system.create_topic(self.topic, QUEUES)

    def start(self, scenario: str) -> Live:
        """Start a live program, which ends with the test."""
        folder = self._folder / f"{scenario}-{secrets.token_hex(2)}"
        live = Live(
            self._program,
            scenario,
            self.system.name_server,
            topic=self.topic,
            group=f"group-of-{self.topic}",
            folder=folder,
            way=USUAL,
        )
        return self._programs.enter_context(live)

    def close(self) -> None:
        """End the programs."""
        self._programs.close()

    def send_to_each_queue(self) -> list[str]:
        """Send one message to each queue; return their bodies."""
        bodies = [f"m-{len(self.sent) + queue_id:06d}" for queue_id in range(QUEUES)]
        with RemotingClient(self.system.send_port) as client:
            for queue_id, body in enumerate(bodies):
                client.send_message(self.topic, body.encode(), queue_id=queue_id)
        self.sent += bodies
        return bodies

    def shares(self, *members: Live, limit_s: float = LIMIT_S) -> list[int]:
        """Send one message to each queue, wait until all are received, and return how many each member received."""
        bodies = set(self.send_to_each_queue())
        until(lambda: bodies <= received(*members), "messages are not received", limit_s)
        return [sum(body in bodies for body in member.bodies) for member in members]


def received(*members: Live) -> set[str]:
    return {body for member in members for body in member.bodies}


def wait_for_acknowledged(sender: Live) -> None:
    count = len(sender.acknowledged) + MESSAGES
    until(lambda: len(sender.acknowledged) >= count, "too few messages are acknowledged")


@pytest.fixture(params=BOTH)
def program(request: pytest.FixtureRequest, programs: Programs) -> Program:
    return require_program(programs, request.param)


@pytest.fixture
def stage(
    request: pytest.FixtureRequest,
    systems: dict[str, System],
    program: Program,
    count_as_scenario: Callable[[Program, str], None],
    tmp_path: Path,
) -> Iterator[Stage]:
    """Return a stage of the system that the test names."""
    stage = Stage(require_system(systems, request.param), program, tmp_path)
    count_as_scenario(program, request.param)
    try:
        yield stage
    finally:
        stage.close()


on_both = pytest.mark.parametrize("stage", [BROKER, TIDEMARK], indirect=True)
only_tidemark = pytest.mark.parametrize("stage", [TIDEMARK], indirect=True)


@on_both
def test_a_member_takes_over_the_queues_of_a_killed_one(stage: Stage) -> None:
    first, second = stage.start("live_receive"), stage.start("live_receive")
    until(lambda: stage.shares(first, second) == [2, 2], "the members do not share the queues")
    second.kill()
    assert stage.shares(first, limit_s=TAKE_OVER_S) == [QUEUES]
    assert received(first, second) == set(stage.sent)


@on_both
def test_no_acknowledged_message_is_lost_when_what_takes_them_is_killed(stage: Stage) -> None:
    """A broker is killed as a whole, Tidemark's writer alone. The sender keeps running."""
    consumer, sender = stage.start("live_receive"), stage.start("live_send")
    for _ in range(2):
        wait_for_acknowledged(sender)
        stage.system.kill(WRITER)
        stage.system.start_again(WRITER)
    wait_for_acknowledged(sender)
    sender.end()
    until(lambda: set(sender.acknowledged) <= received(consumer), "an acknowledged message is not received")


# A broker answers with the members that it knows so far: for a while after its start two of them consume one queue.
@only_tidemark
@pytest.mark.parametrize("service", [QUERY, WRITER])
def test_no_two_members_consume_a_queue_after_a_restart(stage: Stage, service: str) -> None:
    """Clients ask either service for the members. One that does not come back is left out after a while."""
    first, second = stage.start("live_receive"), stage.start("live_receive")
    until(lambda: stage.shares(first, second) == [2, 2], "the members do not share the queues")
    begun = len(stage.sent)
    time.sleep(SAVED_S)
    stage.system.kill(service)
    if service == QUERY:
        stage.send_to_each_queue()
    stage.system.start_again(service)
    until(lambda: set(stage.sent) <= received(first, second), "messages are lost")
    for _ in range(SETTLE_ROUNDS):
        assert stage.shares(first, second) == [2, 2]
        time.sleep(ROUND_S)
    bodies = [body for body in (*first.bodies, *second.bodies) if body in set(stage.sent[begun:])]
    assert sorted(bodies) == stage.sent[begun:]
    stage.system.kill(service)
    second.kill()
    stage.system.start_again(service)
    assert stage.shares(first) == [QUEUES]
    assert received(first, second) == set(stage.sent)
