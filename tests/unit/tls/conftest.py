"""Certificates for the tests of this folder."""

from __future__ import annotations

import pytest

from tests.certificates import Authority, Pair


@pytest.fixture(scope="session")
def server(authority: Authority) -> Pair:
    """Return a certificate of a service."""
    return authority.issue("server")


@pytest.fixture(scope="session")
def other(authority: Authority) -> Pair:
    """Return a certificate of another service."""
    return authority.issue("other")


@pytest.fixture(scope="session")
def expired(authority: Authority) -> Pair:
    """Return an expired certificate of a service."""
    return authority.issue("expired", expired=True)
