"""Licences of what is installed from the lock."""

from __future__ import annotations

import pytest

from scripts.licences import PAGE, licences, not_allowed


def test_all_of_them_are_allowed_and_stand_on_the_page() -> None:
    """`make docs` writes it. Other platforms have further packages, and another Python has others of them."""
    found = licences()
    assert len(found) > 50
    assert not_allowed(found) == {}
    page = PAGE.read_text()
    missing = [name for name, licence in found.items() if f"| {name} | {licence} |" not in page]
    assert missing == []


@pytest.mark.parametrize("licence", ["AGPL-3.0", "MIT AND GPL-2.0", "UNKNOWN", "MIT OR (Apache-2.0 AND SSPL-1.0)", ""])
def test_others_are_told(licence: str) -> None:
    """Also where there is a choice: somebody has to look."""
    assert not_allowed({"some-package": licence}) == {"some-package": licence}
