"""The bill of materials."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts import supply_chain
from scripts.lock import locked_versions


def test_the_sbom_lists_every_locked_version_and_is_reproducible(tmp_path: Path) -> None:
    """It has no time and no serial number: the SBOM changes only with the lock."""
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    assert (supply_chain.write_sbom(first), supply_chain.write_sbom(second)) == (0, 0)
    assert first.read_bytes() == second.read_bytes()
    bill = json.loads(first.read_text())
    assert bill["bomFormat"] == "CycloneDX"
    named = {(one["name"], f"=={one['version']}") for one in bill["components"]}
    locked = {(name, version) for name, versions in locked_versions().items() for version in versions}
    assert named == locked
    assert str(Path.cwd()) not in first.read_text()


@pytest.mark.parametrize(("strict", "status"), [(False, 0), (True, 2)])
def test_an_unreachable_advisory_service_is_reported_as_not_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], strict: bool, status: int
) -> None:
    """The host name is one that RFC 2606 reserves."""
    monkeypatch.setattr(supply_chain, "ADVISORIES", ("advisories.invalid", 443))
    assert supply_chain.check_faults(strict=strict) == status
    assert "NOT CHECKED" in capsys.readouterr().out
