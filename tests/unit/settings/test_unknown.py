"""Environment variables that look like settings."""

from __future__ import annotations

import pytest

from tidemark.settings.registry import CLIENT, SERVICES, settings_class, variable
from tidemark.settings.unknown import unknown_settings


def test_an_unknown_setting_is_reported_with_the_nearest_name() -> None:
    """The line has both names."""
    assert unknown_settings({"TIDEMARK_FLUSH_MOD": "async", "HOME": "/"}) == [
        "TIDEMARK_FLUSH_MOD: unknown setting; did you mean TIDEMARK_FLUSH_MODE?"
    ]


def test_an_unknown_setting_without_a_similar_name_has_no_suggestion() -> None:
    """The common prefix does not count."""
    (line,) = unknown_settings({"TIDEMARK_XYZZY": "1"})
    assert line == "TIDEMARK_XYZZY: unknown setting; `tidemark config show` lists all settings"


def test_settings_of_every_service_and_of_clients_are_known_to_all() -> None:
    """Services and clients share one environment."""
    classes = [settings_class(name) for name in (*SERVICES, CLIENT)]
    environment = {variable(field): "" for settings in classes for field in settings.model_fields}
    assert len(environment) > 50
    assert unknown_settings(environment) == []


def test_settings_are_matched_case_insensitively() -> None:
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
def test_variables_set_by_kubernetes_are_not_unknown_settings(name: str, value: str) -> None:
    """Kubernetes sets these variables in every pod next to a Service `tidemark` or `tidemark-writer`."""
    assert unknown_settings({name: value}) == []


def test_a_kubernetes_name_with_another_value_is_an_unknown_setting() -> None:
    """The name is one that Kubernetes sets, but the value is no address."""
    assert unknown_settings({"TIDEMARK_WRITER_PORT": "8081"}) != []
