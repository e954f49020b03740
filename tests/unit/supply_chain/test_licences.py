"""Licences of the packages that the lock installs."""

from __future__ import annotations

import re

import pytest

from scripts.licences import PAGE, installed_by, licences, not_allowed


def test_all_of_them_are_allowed() -> None:
    """Other platforms and Python versions have further packages."""
    found = licences()
    assert len(found) > 50
    assert not_allowed(found) == {}


def test_the_page_has_the_packages_that_a_user_installs() -> None:
    """`make docs` writes the page."""
    installed = installed_by("tidemark[all]")
    assert {"grpcio", "pyspark", "fastapi", "llvmlite"} <= installed  # also packages that those need
    assert installed.isdisjoint({"tidemark", "pytest", "mypy"})
    found = {name: licence for name, licence in licences().items() if name in installed}
    assert found.keys() == installed
    rows = re.findall(r"^\| (.*) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    listed = {(name, licence) for licence, names in rows for name in names.split(", ")}
    assert found.items() - listed == set()


@pytest.mark.parametrize("licence", ["AGPL-3.0", "MIT AND GPL-2.0", "UNKNOWN", "MIT OR (Apache-2.0 AND SSPL-1.0)", ""])
def test_other_licences_are_reported(licence: str) -> None:
    """A choice of licences is reported too, because it needs a decision."""
    assert not_allowed({"some-package": licence}) == {"some-package": licence}
