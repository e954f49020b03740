"""The writer addresses of a producer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemark.client.producer import writer_addresses as writer_list
from tidemark.client.producer.writer_addresses import FixedList, RouteFile
from tidemark.errors import ArgumentIllegalError


@pytest.mark.parametrize("writers", ["a:1,b:2", "a:1 , b:2", ["a:1", "b:2"], ("a:1", "b:2", "a:1")])
def test_a_writer_list_is_a_string_or_a_sequence(writers: str | list[str]) -> None:
    """Each address is used once."""
    assert FixedList(writers).addresses() == ("a:1", "b:2")


@pytest.mark.parametrize("writers", ["", "a", [], ["a:1", ""]])
def test_an_invalid_address_is_refused(writers: str | list[str]) -> None:
    """The error comes when the producer is created, not at the first send."""
    with pytest.raises(ArgumentIllegalError):
        FixedList(writers)


@pytest.mark.parametrize(
    ("name", "text"), [("routes.toml", 's0 = "a:1"\ns1 = "b:2"\n'), ("routes.json", '{"s0": "a:1", "s1": "b:2"}')]
)
def test_a_route_file_is_toml_or_json(tmp_path: Path, name: str, text: str) -> None:
    """The file has one line per writer."""
    (tmp_path / name).write_text(text)
    assert RouteFile(tmp_path / name).addresses() == ("a:1", "b:2")


@pytest.mark.parametrize("text", ["", "s0 = 1", "not toml", '[s0]\nx = "a:1"'])
def test_an_invalid_route_file_is_refused(tmp_path: Path, text: str) -> None:
    """The error names the path."""
    path = tmp_path / "routes.toml"
    path.write_text(text)
    with pytest.raises(ArgumentIllegalError):
        RouteFile(path)


def test_a_changed_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be parsed leaves the previous writers in use."""
    monkeypatch.setattr(writer_list, "_LOOK_EVERY_S", 0.0)
    path = tmp_path / "routes.toml"
    path.write_text('s0 = "a:1"')
    file = RouteFile(path)
    path.write_text('s0 = "a:1"\ns1 = "b:2"')
    assert file.addresses() == ("a:1", "b:2")
    path.write_text("half of a ch")
    assert file.addresses() == ("a:1", "b:2")
    path.unlink()
    assert file.addresses() == ("a:1", "b:2")
    path.write_text('s9 = "c:3"')
    assert file.addresses() == ("c:3",)
