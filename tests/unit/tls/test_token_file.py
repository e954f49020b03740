"""Tokens in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemark.errors import TokenFileError
from tidemark.tls.credentials import Credentials


def test_a_token_is_read_again_when_its_file_changes(tmp_path: Path) -> None:
    """An open client reads it again too."""
    path = tmp_path / "token"
    path.write_text("one\n")
    tls = Credentials(token_file=path)
    assert tls.authorization() == "Bearer one"
    path.write_text("two, longer"[:3])
    new = tmp_path / "new"
    new.write_text("second")
    new.rename(path)
    assert tls.authorization() == "Bearer second"


@pytest.mark.parametrize("text", ["", "\n", "two words", "ä"])
def test_an_invalid_token_file_is_reported_without_its_content(tmp_path: Path, text: str) -> None:
    """The error comes before a connection is opened."""
    path = tmp_path / "token"
    path.write_text(text)
    with pytest.raises(TokenFileError, match=r"token contains no token"):
        Credentials(token_file=path).authorization()
    with pytest.raises(TokenFileError, match="No such file"):
        Credentials(token_file=tmp_path / "absent").authorization()


def test_a_token_is_not_part_of_the_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a traceback nor a notebook shows it."""
    monkeypatch.setenv("TIDEMARK_TOKEN", "secret")
    tls = Credentials.from_environment()
    assert tls.authorization() == "Bearer secret"
    assert "secret" not in repr(tls)
