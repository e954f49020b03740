"""A whole stack with TLS and client certificates, and the command as its user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.certificates import Authority, Pair
from tests.integration.cli.conftest import Tidemark
from tidemark.local.local_stack import QUERY, WRITER, LocalStack

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def settings(authority: Authority, server: Pair) -> dict[str, str]:
    """Return the settings of services that present the same certificate to each other."""
    return {
        "TIDEMARK_TLS_CA": str(authority.ca),
        "TIDEMARK_TLS_CERT": str(server.cert),
        "TIDEMARK_TLS_KEY": str(server.key),
        "TIDEMARK_TLS_CLIENT_CA": str(authority.ca),
    }


@pytest.fixture(scope="module")
def stack(settings: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Run writer and query."""
    data = tmp_path_factory.mktemp("stack") / "data"
    with LocalStack(data, services=(WRITER, QUERY), environment=settings) as stack:
        yield stack


def run(stack: LocalStack, settings: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a module of the services with the environment of *stack*."""
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        env={**os.environ, **settings, "TIDEMARK_STORE_ROOT": str(stack.data)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_command_produces_and_consumes_over_tls(
    stack: LocalStack, settings: dict[str, str], authority: Authority, client: Pair
) -> None:
    """The client's own certificate comes from the environment."""
    assert stack.writer_address.startswith("tls://")
    assert stack.query_url.startswith("https://")
    tidemark = Tidemark(stack.writer_address, stack.query_url)
    tidemark.environment |= {
        "TIDEMARK_TLS_CA": str(authority.ca),
        "TIDEMARK_TLS_CERT": str(client.cert),
        "TIDEMARK_TLS_KEY": str(client.key),
    }
    assert tidemark.json("produce", "orders", given="one\ntwo\n")["acknowledged"] == 2
    drained = run(stack, settings, "services.indexer", "pipeline", "--once", "--pipeline", "plain")
    assert drained.returncode == 0, drained.stderr
    assert {message["body"] for message in tidemark.messages("orders", "--from", "earliest")} == {"one", "two"}
    seen = json.loads(tidemark.run("status", "--output", "json").stdout)
    assert (seen["writer"]["answers"], seen["query"]["answers"]) == (True, True)


def test_a_command_without_a_certificate_names_the_settings(stack: LocalStack, authority: Authority) -> None:
    """The command exits with 5 and prints the reason and the settings."""
    tidemark = Tidemark(stack.writer_address, stack.query_url)
    tidemark.environment["TIDEMARK_TLS_CA"] = str(authority.ca)
    refused = tidemark.run("topic", "list")
    assert refused.returncode == 5
    assert b"it requires a client certificate" in refused.stderr
    assert b"TIDEMARK_TLS_CERT" in refused.stderr


def test_health_checks_work_over_tls(stack: LocalStack, settings: dict[str, str]) -> None:
    """They run as in containers."""
    for module, listens in (
        ("services.writer.healthcheck", {"TIDEMARK_WRITER_LISTEN": stack.writer_listen}),
        ("services.indexer.query.healthcheck", {"TIDEMARK_QUERY_LISTEN": f"127.0.0.1:{stack.query_port}"}),
    ):
        assert run(stack, {**settings, **listens}, module).returncode == 0, module
        assert run(stack, listens, module).returncode == 1, module
