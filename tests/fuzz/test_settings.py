"""Settings of any value: a service accepts them, or refuses each by its name in a separate line."""

from __future__ import annotations

import os
from unittest import mock

import pytest
from hypothesis import strategies as st
from pydantic_settings import BaseSettings

from tests.fuzz.target import fuzz
from tests.property.strategies import I8
from tidemark.client.settings import ClientSettings
from tidemark.settings.door import SettingsRefusedError, read_settings
from tidemark.settings.registry import CLIENT, SERVICES, settings_class, variable
from tidemark.store.paths import StorePaths

NAMES = sorted({variable(field) for name in (*SERVICES, CLIENT) for field in settings_class(name).model_fields})
VALUES = st.one_of(
    I8.map(str),
    st.sampled_from(
        [
            "",
            " ",
            "true",
            "0",
            "-0",
            "1e3",
            "nan",
            "inf",
            "-inf",
            "1e999",
            "9" * 5_000,
            "٣",
            "null",
            "[]",
            "{}",
            "{",
            ":",
            "127.0.0.1:0",
            "127.0.0.1",
            "[::1]:0",
            "[::1",
            "::",
            "localhost:99999",
            "127.0.0.1:-1",
            ":٣",
            "127.0.0.1:²",
            "256.0.0.1:1",
            "a,b",
            "/",
            "~",
            "..",
            "/dev/null",
            "/proc/self/mem",
            "async",
            "é",
            "x" * 70_000,
        ]
    ),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12),
)


def read_or_refuse(service: str, kind: type[BaseSettings]) -> BaseSettings | None:
    """Return the settings; None if they are refused, in lines that begin with the service's name."""
    refused: tuple[str, ...] = ()
    try:
        return read_settings(service, kind)
    except SettingsRefusedError as error:
        refused = error.lines
    assert refused
    assert all(line.startswith(f"{service}: ") and "\n" not in line for line in refused)
    return None


@pytest.mark.parametrize("service", SERVICES)
def test_every_service_has_settings_to_fuzz(service: str) -> None:
    """Each service has some."""
    assert len(settings_class(service).model_fields) > 5


@fuzz(
    few=150,
    at_once=500,
    service=st.sampled_from(SERVICES),
    given=st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4),
)
def test_fuzzed_service_settings_are_read_or_refused_with_their_name(service: str, given: dict[str, str]) -> None:
    """No other error occurs; folders and addresses can be made from accepted settings."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
    with mock.patch.dict(os.environ, {**own, **given}, clear=True):
        settings = read_or_refuse(service, settings_class(service))
    if settings is None:
        return
    root = getattr(settings, "store_root")  # noqa: B009 - each service's class has one
    folders = getattr(settings, "log_folders", None)
    StorePaths(root, None if folders is None else folders(root))
    for derived in ("host", "port", "retention", "dialling"):
        getattr(settings, derived, None)
    if hasattr(settings, "advertised_host"):
        settings.advertised_host(8081)


@fuzz(few=60, at_once=500, given=st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4))
def test_fuzzed_client_settings_are_read_or_refused_with_their_name(given: dict[str, str]) -> None:
    """The rule is the same as for a service."""
    with mock.patch.dict(os.environ, given, clear=True):
        read_or_refuse(CLIENT, ClientSettings)
