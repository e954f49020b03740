"""Two authorities, and services and clients with their certificates."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.certificates import Authority, Pair


@pytest.fixture(scope="session")
def server(authority: Authority) -> Pair:
    """Return a certificate of a service, for both uses, because services connect to each other."""
    return authority.issue("server")


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return another authority."""
    return Authority(tmp_path_factory.mktemp("tls") / "stranger", "Another authority")


@pytest.fixture(scope="session")
def client(authority: Authority) -> Pair:
    """Return a certificate of a client."""
    return authority.issue("client", uses="clientAuth")


@pytest.fixture
def files(tmp_path: Path, server: Pair) -> Pair:
    """Return a service's files, which a test replaces."""
    own = Pair(tmp_path / "cert.pem", tmp_path / "key.pem")
    server.put(own)
    return own
