"""Settings of the writer."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from services.writer.config import FlushMode, WriterSettings
from tidemark.format.host import Host


def test_environment_names_are_stable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is TIDEMARK_ and the field's name in capitals; scripts rely on them."""
    given = {
        "STORE_ROOT": "/somewhere",
        "WRITER_LISTEN": "0.0.0.0:9",
        "STORE_NAME": "store-7",
        "ADVERTISED_ADDRESS": "10.0.0.1:8",
        "AUTO_CREATE_TOPICS": "false",
        "DEFAULT_QUEUES": "9",
        "LOG_LEVEL": "debug",
        "FLUSH_MODE": "async",
        "COMMIT_LOG_SEGMENT_SIZE_BYTES": "1048576",
    }
    for name, value in given.items():
        monkeypatch.setenv(f"TIDEMARK_{name}", value)
    settings = WriterSettings()
    assert (str(settings.store_root), settings.writer_listen, settings.store_name) == (
        "/somewhere",
        "0.0.0.0:9",
        "store-7",
    )
    assert (settings.auto_create_topics, settings.default_queues, settings.log_level) == (False, 9, "debug")
    assert (settings.flush_mode, settings.commit_log_segment_size_bytes) == (FlushMode.ASYNC, 1 << 20)
    assert "commit_log_segment_size_bytes" in settings.model_fields_set


@pytest.mark.parametrize(
    ("listen", "advertised", "host"),
    [
        ("127.0.0.1:0", None, Host("127.0.0.1", 77)),
        ("0.0.0.0:0", None, Host("127.0.0.1", 77)),
        ("[::]:0", None, Host("127.0.0.1", 77)),
        ("[::1]:0", None, Host("::1", 77)),
        ("localhost:0", None, Host("127.0.0.1", 77)),
        ("0.0.0.0:0", "192.168.7.65:10911", Host("192.168.7.65", 10911)),
    ],
)
def test_advertised_host_follows_the_setting_then_the_bound_address(
    listen: str, advertised: str | None, host: Host
) -> None:
    """A wildcard cannot be advertised: loopback is used, with the bound port."""
    settings = WriterSettings(writer_listen=listen, advertised_address=advertised)
    assert settings.advertised_host(77) == host


@pytest.mark.parametrize(
    "wrong",
    [
        {"writer_listen": "nowhere"},
        {"writer_metrics_listen": "nowhere"},
        {"metrics_max_topics": 0},
        {"advertised_address": "broker.example:1"},
        {"default_queues": 0},
        {"commit_log_segment_size_bytes": 1},
        {"max_in_flight_bytes": 1},
        {"flush_mode": "never"},
    ],
    ids=str,
)
def test_invalid_settings_are_refused(wrong: dict[str, object]) -> None:
    """The refusal comes at the start."""
    with pytest.raises(ValidationError):
        WriterSettings(**wrong)  # type: ignore[arg-type]


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        setattr(WriterSettings(), "store_name", "other")  # noqa: B010 - mypy knows it is frozen


def test_the_receive_limit_fits_the_largest_legal_batch() -> None:
    """It has room for a 4 MiB body and the rest of its request."""
    assert WriterSettings().receive_limit_bytes > 4_194_304 + 65_536


def test_a_frame_may_be_as_large_as_a_grpc_request() -> None:
    """Two messages of the largest size, and more."""
    assert WriterSettings().connection_limits.frame_bytes == 16 << 20
    limits = WriterSettings(max_message_size_bytes=64 << 20, max_in_flight_bytes=64 << 20).connection_limits
    assert limits.frame_bytes > 128 << 20
