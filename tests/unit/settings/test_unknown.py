"""Environment variables that look like settings."""

from __future__ import annotations

import pytest

from tidemark.settings.registry import CLIENT, SERVICES, settings_class, variable
from tidemark.settings.unknown import unknown_settings


def test_a_typing_error_is_told_with_the_nearest_name() -> None:
    """The line has both names."""
    assert unknown_settings({"TIDEMARK_FLUSH_MOD": "async", "HOME": "/"}) == [
        "TIDEMARK_FLUSH_MOD: unknown setting; did you mean TIDEMARK_FLUSH_MODE?"
    ]


def test_what_is_near_to_nothing_has_no_hint_of_a_name() -> None:
    """The common prefix does not count."""
    (line,) = unknown_settings({"TIDEMARK_XYZZY": "1"})
    assert line == "TIDEMARK_XYZZY: unknown setting; `tidemark config show` lists all settings"


def test_settings_of_every_service_and_of_clients_are_known_to_all() -> None:
    """They share one environment."""
    classes = [settings_class(name) for name in (*SERVICES, CLIENT)]
    environment = {variable(field): "" for settings in classes for field in settings.model_fields}
    assert len(environment) > 50
    assert unknown_settings(environment) == []


def test_lower_case_counts() -> None:
    """Settings are read without regard to case."""
    assert unknown_settings({"tidemark_flush_mode": "async"}) == []
    assert unknown_settings({"tidemark_flush_mod": "async"}) != []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TIDEMARK_SERVICE_HOST", "10.0.0.7"),
        ("TIDEMARK_WRITER_SERVICE_PORT", "8081"),
        ("TIDEMARK_WRITER_SERVICE_PORT_GRPC", "8081"),
        ("TIDEMARK_WRITER_PORT", "tcp://10.0.0.7:8081"),
        ("TIDEMARK_WRITER_PORT_8081_TCP_ADDR", "10.0.0.7"),
    ],
)
def test_what_a_cluster_sets_for_its_own_service_names_is_no_typing_error(name: str, value: str) -> None:
    """Kubernetes sets it in every pod next to a Service `tidemark` or `tidemark-writer`."""
    assert unknown_settings({name: value}) == []


def test_a_port_that_somebody_typed_is_one() -> None:
    """It has the same name, but its value is no address."""
    assert unknown_settings({"TIDEMARK_WRITER_PORT": "8081"}) != []
