from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidemark.client.wire.bearer_token import Bearer
from tidemark.errors import TokenFileError
from tidemark.tls.credentials import Credentials

KINDS = ("intercept_unary_unary", "intercept_unary_stream", "intercept_stream_stream")


def shown(bearer: Bearer, kind: str, metadata: list[tuple[str, str]] | None = None) -> Any:
    """Return the details of a call after the interceptor."""
    details = SimpleNamespace(
        method="/m", timeout=3.0, metadata=metadata, credentials="call's", wait_for_ready=True, compression="gzip"
    )
    found, request = getattr(bearer, kind)(lambda details, request: (details, request), details, "request")
    assert request == "request"
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_call_shows_the_token_and_keeps_its_details(kind: str) -> None:
    details = shown(Bearer(Credentials(token="secret")), kind, [("trace", "1")])
    assert details.metadata == [("trace", "1"), ("authorization", "Bearer secret")]
    assert (details.method, details.timeout, details.wait_for_ready) == ("/m", 3.0, True)
    assert (details.credentials, details.compression) == ("call's", "gzip")


def test_a_call_without_metadata_gets_the_token() -> None:
    assert shown(Bearer(Credentials(token="secret")), KINDS[0]).metadata == [("authorization", "Bearer secret")]


def test_a_file_without_a_token_fails_the_call(tmp_path: Path) -> None:
    empty = tmp_path / "token"
    empty.write_text("\n")
    with pytest.raises(TokenFileError):
        shown(Bearer(Credentials(token_file=empty)), KINDS[0])
