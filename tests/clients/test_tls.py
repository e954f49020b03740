"""Clients over TLS with a token in the place of RocketMQ's security token."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.peers.toolchain import ToolchainMissingError
from tests.access_files import AccessFolder
from tests.certificates import Authority
from tidemark.tls.credentials import Credentials

from .judging import require_equal_observations, require_program
from .programs import Program, Way
from .runs import Case, Runs
from .scenarios import BOTH, JAVA, SCENARIOS
from .systems import TIDEMARK, System, TidemarkSystem
from .table import Verdicts

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.exhaustive,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
]
# Only with Tidemark: a broker knows no tokens.
_SCENARIOS = (
    "send_sync",
    "send_batch",
    "push_concurrent",
    "push_orderly",
    "retry_to_dead_letters",
    "lite_subscribe",
    "pull",
    "query_message",
)
_CHECKED = ("send_sync", "push_concurrent")  # Go's client cannot check certificates
CASES = [
    *(Case(one, client, "token") for one in SCENARIOS if one.name in _SCENARIOS for client in one.clients),
    *(Case(one, JAVA, "checked") for one in SCENARIOS if one.name in _CHECKED),
]
_TLS = "-Dtls.enable=true"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority") / "ca", "Authority")


class Access(NamedTuple):
    """An access file, and the tokens of its principals."""

    path: Path
    admin: str
    program: str
    reader: str


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Access:
    files = AccessFolder(tmp_path_factory.mktemp("access"))
    tokens = []
    for name, actions in (("admin", ["All"]), ("program", ["Pub", "Sub"]), ("reader", ["Sub"])):
        tokens.append(files.principal(name))
        files.rule(name, actions, "Topic:*", "Group:*")
    return Access(files.path, *tokens)


@pytest.fixture(scope="module")
def systems(
    tmp_path_factory: pytest.TempPathFactory, by_writer: bool, authority: Authority, access: Access
) -> Iterator[dict[str, System]]:
    """Start Tidemark with TLS and an access file."""
    server = authority.issue("services")
    environment = {
        "TIDEMARK_TLS_CERT": str(server.cert),
        "TIDEMARK_TLS_KEY": str(server.key),
        "TIDEMARK_TLS_CA": str(authority.ca),
        "TIDEMARK_ACCESS_FILE": str(access.path),
    }
    system = TidemarkSystem(
        tmp_path_factory.mktemp("systems"),
        by_writer=by_writer,
        environment=environment,
        credentials=Credentials(ca=authority.ca, token=access.admin),
    )
    with system:
        yield {TIDEMARK: system}


@pytest.fixture(scope="module")
def ways(authority: Authority, access: Access) -> dict[str, Way]:
    """Return ways with a token for sends and reads; `checked` also checks the certificate."""
    checks = (
        "-Dtls.test.mode.enable=false",
        "-Dtls.client.authServer=true",
        f"-Dtls.client.trustCertPath={authority.ca}",
    )
    environment = {"CLIENTS_TLS": "on", "CLIENTS_TOKEN": access.program}
    return {"token": Way((_TLS,), environment), "checked": Way((_TLS, *checks), environment)}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_clients_with_tls_and_a_token_observe_what_others_observe(case: Case, runs: Runs, verdicts: Verdicts) -> None:
    require_equal_observations(case, runs, verdicts)


@pytest.mark.parametrize(
    ("lacks", "error"),
    [
        ("TLS", "RemotingSendRequestException|route info not found"),
        ("a token", "(?i)no route info of this topic|route info not found"),
        ("the right to send", "(?i)code: 16"),
    ],
)
@pytest.mark.parametrize("client", BOTH)
def test_a_client_without_what_is_required_cannot_send(
    client: str,
    lacks: str,
    error: str,
    programs: dict[str, Program | ToolchainMissingError],
    systems: dict[str, System],
    access: Access,
    tmp_path: Path,
) -> None:
    """The send ends with the client's own error. Without a token or TLS, not even the topic's route is answered."""
    program, system = require_program(programs, client), systems[TIDEMARK]
    way = {
        "TLS": Way((), {"CLIENTS_TOKEN": access.program}),
        "a token": Way((_TLS,), {"CLIENTS_TLS": "on"}),
        "the right to send": Way((_TLS,), {"CLIENTS_TLS": "on", "CLIENTS_TOKEN": access.reader}),
    }[lacks]
    topic = f"lacks-{secrets.token_hex(4)}"
    system.create_topic(topic, 4)
    with pytest.raises(AssertionError, match=error):
        program.run(
            "send_sync", topic=topic, group="g", name_server=system.name_server, folder=tmp_path / "run", way=way
        )
