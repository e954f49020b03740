"""A topic whose first messages have expired: a new group begins where its consumeFromWhere says."""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.peers.toolchain import ToolchainMissingError
from tests.conformance.broker.file_sizes import FileSizes
from tests.remoting_client import RemotingClient
from tests.waiting import until
from tidemark.remoting import RequestCode

from .conftest import wanted_systems
from .judging import require_program, require_system
from .live import Live
from .programs import USUAL, Program
from .scenarios import BOTH
from .systems import BROKER, TIDEMARK, BrokerSystem, System, TidemarkSystem

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.exhaustive,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
]
_SIZES = FileSizes(commit_log=1 << 18, consume_queue=4_000, index_slots=100, index_entries=400)
_EVERY_HOUR = ";".join(f"{hour:02d}" for hour in range(24))
_BROKERS = {"fileReservedTime": 0, "deleteWhen": _EVERY_HOUR, "cleanResourceInterval": 1_000}
_OURS = {
    **_SIZES.as_environment(),
    "TIDEMARK_RETENTION_HOURS": "0.0003",  # a second
    "TIDEMARK_RETENTION_INTERVAL_MS": "100",
}
_EXPIRY_S = 300.0  # a broker begins its cleaning a minute after its start
_PAUSE_S = 0.5
_BODY = b"old" + bytes(range(48, 58)) * 1_000


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory, by_writer: bool) -> dict[str, System]:
    """Return systems that keep only the newest files of their logs; one runs at a time."""
    folder = tmp_path_factory.mktemp("systems")
    made: dict[str, System] = {
        BROKER: BrokerSystem(folder / BROKER, sizes=_SIZES, settings=_BROKERS),
        TIDEMARK: TidemarkSystem(folder / TIDEMARK, by_writer=by_writer, environment=_OURS),
    }
    return {name: system for name, system in made.items() if name in wanted_systems()}


@pytest.fixture(scope="module", params=[BROKER, TIDEMARK])
def system(request: pytest.FixtureRequest, systems: dict[str, System]) -> Iterator[System]:
    with require_system(systems, request.param) as running:
        yield running


def min_offset(system: System, topic: str) -> int:
    with RemotingClient(system.read_port) as client:
        answer = client.call(RequestCode.GET_MIN_OFFSET, {"topic": topic, "queueId": "0"})
    return int(answer.fields["offset"])


def send(system: System, topic: str, *bodies: bytes) -> None:
    with RemotingClient(system.send_port) as client:
        for body in bodies:
            client.send_message(topic, body, queue_id=0)


@pytest.fixture(scope="module")
def topic(system: System) -> str:
    """Return a topic of one queue whose first messages have expired."""
    name = f"expired-{secrets.token_hex(4)}"
    system.create_topic(name, 1)

    def send_some() -> bool:
        send(system, name, *[_BODY] * 30)
        time.sleep(_PAUSE_S)
        return min_offset(system, name) > 0

    until(send_some, "no message has expired", _EXPIRY_S)
    return name


@pytest.mark.parametrize("client", BOTH)
def test_a_group_that_begins_at_the_end_receives_no_message_of_before(
    client: str,
    system: System,
    topic: str,
    programs: dict[str, Program | ToolchainMissingError],
    count_as_scenario: Callable[[Program, str], None],
    tmp_path: Path,
) -> None:
    """Only with a minimum above 0: otherwise a broker begins at 0, because it takes the topic for a new one."""
    program = require_program(programs, client)
    count_as_scenario(program, BROKER if isinstance(system, BrokerSystem) else TIDEMARK)
    group, folder = f"group-{client}-of-{topic}", tmp_path / "consumer"
    name_server = system.name_server
    with Live(program, "live_receive_new", name_server, topic=topic, group=group, folder=folder, way=USUAL) as consumer:
        numbers = itertools.count()

        def send_a_new_one() -> bool:
            send(system, topic, f"new-{next(numbers)}".encode())
            time.sleep(_PAUSE_S)
            return bool(consumer.received)

        until(send_a_new_one, "nothing is received")
        assert all(body.startswith("new-") for body in consumer.bodies)
