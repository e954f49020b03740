"""The program's own version."""

from __future__ import annotations

import importlib.metadata

import pytest

from tidemark.version import program_version


def test_the_version_of_an_uninstalled_program_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The images run from a folder, where reading the version must not fail."""
    assert program_version() == importlib.metadata.version("tidemark")

    def nothing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", nothing)
    assert program_version() == "unknown"
