"""Two authorities, and services and clients with certificates of theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.certificates import Authority, Pair


@pytest.fixture(scope="session")
def server(authority: Authority) -> Pair:
    """Of a service; for both uses, as services dial each other."""
    return authority.issue("server")


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Somebody else."""
    return Authority(tmp_path_factory.mktemp("tls") / "stranger", "Another authority")


@pytest.fixture(scope="session")
def client(authority: Authority) -> Pair:
    """Of a client."""
    return authority.issue("client", uses="clientAuth")


@pytest.fixture
def files(tmp_path: Path, server: Pair) -> Pair:
    """Files of a service that a test replaces."""
    own = Pair(tmp_path / "cert.pem", tmp_path / "key.pem")
    server.put(own)
    return own
