"""The metrics of each running service are those of docs/metrics.md."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import httpx
import pytest

from tests.access_files import AccessFolder
from tests.fixed_ports import fixed_port, fixed_ports
from tests.integration.conftest import WITHOUT_SPARK
from tests.integration.writer.follow.fake_master import FakeMaster
from tests.waiting import until
from tidemark.client.wire.group_admin import ReplicationGroup
from tidemark.local.local_stack import PIPELINE, QUERY, WRITER, LocalStack
from tidemark.metrics import table

pytestmark = pytest.mark.integration

FILE_BYTES = 1 << 20  # of the golden store's log
OF_SERVICES = {
    WRITER: {table.WRITER, table.EACH, table.BOTH},
    PIPELINE: {table.PIPELINE, table.EACH},
    QUERY: {table.QUERY, table.EACH, table.BOTH},
}


@contextlib.contextmanager
def served(
    folder: Path,
    *services: str,
    environment: Mapping[str, str] | None = None,
    writer_port: int | None = None,
    writer_remoting_port: int | None = None,
) -> Iterator[tuple[LocalStack, dict[str, str]]]:
    """Run services; yield them, and the address of each one's metrics."""
    addresses = {name: f"127.0.0.1:{fixed_port()}" for name in (WRITER, PIPELINE)}
    listen = {f"TIDEMARK_{name.upper()}_METRICS_LISTEN": address for name, address in addresses.items()}
    settings = {**WITHOUT_SPARK, **listen, **(environment or {})}
    with LocalStack(
        folder,
        writer_port=writer_port,
        writer_remoting_port=writer_remoting_port,
        environment=settings,
        services=services or None,
    ) as stack:
        yield stack, addresses | {QUERY: stack.query_url.removeprefix("http://")}


def types(address: str) -> dict[str, str]:
    """Return the type of each metric that is served at *address*, without those of the process."""
    answer = httpx.get(f"http://{address}/metrics", timeout=30)
    answer.raise_for_status()
    found = dict(re.findall(r"^# TYPE (\w+) (\w+)$", answer.text, re.MULTILINE))
    assert "process_open_fds" in found
    return {name: kind for name, kind in found.items() if not name.startswith("process_")}


def documented(services: set[str]) -> dict[str, str]:
    """Return the type of each metric that the table has for *services*."""
    return {row.name: row.kind.value for row in table.ROWS if row.service in services}


def require_metrics(address: str, expected: dict[str, str]) -> None:
    """Wait until the metrics at *address* are the *expected* ones with their types."""
    until(lambda: types(address) == expected, "the documented metrics", found=lambda: str(types(address)))


def test_each_service_serves_the_documented_metrics(tmp_path: Path) -> None:
    """The pipeline's are those of its scrub, too, which runs by default."""
    with served(tmp_path) as (_, addresses):
        for name, services in OF_SERVICES.items():
            require_metrics(addresses[name], documented(services))


def test_a_writer_with_slaves_serves_theirs(tmp_path: Path) -> None:
    _, _, remoting, slaves = fixed_ports(4)  # slaves ask for topics at the port for RocketMQ's clients minus two
    settings = {"TIDEMARK_SLAVES_LISTEN": f"127.0.0.1:{slaves}"}
    with served(tmp_path, WRITER, environment=settings, writer_remoting_port=remoting) as (_, addresses):
        require_metrics(addresses[WRITER], documented({table.SLAVES, *OF_SERVICES[WRITER]}))


def test_a_writer_with_an_access_file_serves_its_state(tmp_path: Path) -> None:
    access = {"TIDEMARK_ACCESS_FILE": str(AccessFolder(tmp_path).path)}
    with served(tmp_path / "store", WRITER, environment=access) as (_, addresses):
        require_metrics(addresses[WRITER], documented({table.ACCESS, *OF_SERVICES[WRITER]}))


def test_a_member_that_writes_serves_those_of_its_group_too(tmp_path: Path) -> None:
    port = fixed_port()
    group = {
        "TIDEMARK_REPLICATION": "async",
        "TIDEMARK_MEMBER": "a",
        "TIDEMARK_GROUP_MEMBERS": f"a=127.0.0.1:{port},b=127.0.0.1:{fixed_port()}",
    }
    expected = documented({table.GROUP, *OF_SERVICES[WRITER]})
    del expected["tidemark_replication_lease_seconds_left"]  # with etcd only
    with served(tmp_path, WRITER, writer_port=port, environment=group) as (stack, addresses):
        ReplicationGroup(stack.writer_address).promote("a")
        require_metrics(addresses[WRITER], expected)


def test_a_follower_of_a_broker_serves_the_documented_metrics(
    golden_store: Callable[[str], Path], tmp_path: Path
) -> None:
    store = Path(shutil.copytree(golden_store("mixed/store"), tmp_path / "broker"))
    with FakeMaster(store, FILE_BYTES) as master:
        followed = {"TIDEMARK_FOLLOW": master.url, "TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES": str(FILE_BYTES)}
        with served(tmp_path / "copy", WRITER, environment=followed) as (_, addresses):
            of_follower = documented({table.FOLLOWER, table.EACH})
            until(lambda: of_follower.items() <= types(addresses[WRITER]).items(), "the metrics of a follower")
