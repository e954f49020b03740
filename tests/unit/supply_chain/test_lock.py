"""The lock: each requirement has a version and hashes, and none has an address."""

from __future__ import annotations

import re

from scripts.lock import LOCK, requirements


def test_every_requirement_has_one_version_and_hashes() -> None:
    """`make sync` makes pip check the hashes, so nothing else is installed."""
    entries = list(requirements(LOCK.read_text()))
    assert len(entries) > 100
    for requirement, hashes in entries:
        assert [one.operator for one in requirement.specifier] == ["=="], str(requirement)
        assert hashes, str(requirement)
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in hashes), str(requirement)


def test_the_lock_file_contains_no_address() -> None:
    """There is no registry's address, and no path of the machine that compiled it."""
    assert not re.search(r"://|--(extra-)?index-url|--find-links|--trusted-host|file:", LOCK.read_text())
