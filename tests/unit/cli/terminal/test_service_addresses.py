"""Addresses of the services."""

from __future__ import annotations

import pytest

from tidemark.cli.terminal.service_addresses import DEFAULT_QUERY_URL, DEFAULT_WRITER_ADDRESS, topic_path
from tidemark.client.settings import ClientSettings


def test_the_default_addresses_equal_those_of_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Help shows them without importing the client's settings."""
    monkeypatch.delenv("TIDEMARK_WRITER_ADDRESS", raising=False)
    monkeypatch.delenv("TIDEMARK_QUERY_URL", raising=False)
    settings = ClientSettings()
    assert (settings.writer_address, settings.query_url) == (DEFAULT_WRITER_ADDRESS, DEFAULT_QUERY_URL)


def test_a_topics_name_is_quoted() -> None:
    """A retry topic's name has percent signs."""
    assert topic_path("%RETRY%g") == "/v1/topics/%25RETRY%25g"
