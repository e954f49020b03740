"""scripts/lock_for.py: the parts of requirements.lock that images install."""

from __future__ import annotations

import pytest

from scripts.lock import LOCK, requirements
from scripts.lock_for import part_of_lock


def names(text: str) -> set[str]:
    return {requirement.name for requirement, _ in requirements(text)}


def test_a_part_has_its_extras_with_their_dependencies_and_hashes() -> None:
    part = part_of_lock(["query"], set())
    assert {"fastapi", "starlette", "grpcio", "pyarrow", "numba", "llvmlite", "orjson"} <= names(part)
    assert names(part).isdisjoint({"pyspark", "typer", "pytest", "tidemark"})
    assert list(requirements(part)) == [one for one in requirements(LOCK.read_text()) if one[0].name in names(part)]


def test_a_part_lacks_excluded_packages_and_their_dependencies() -> None:
    assert names(part_of_lock(["query"], set())) - names(part_of_lock(["query"], {"numba"})) == {"numba", "llvmlite"}


def test_several_extras_and_groups_are_one_part() -> None:
    both = names(part_of_lock(["writer", "build"], set()))
    assert both == names(part_of_lock(["writer"], set())) | names(part_of_lock(["build"], set()))
    assert "setuptools" in both


def test_a_group_has_the_groups_that_it_includes() -> None:
    assert {"pytest", "mkdocs-material", "matplotlib", "ruff"} <= names(part_of_lock(["dev"], set()))


@pytest.mark.parametrize(
    ("parts", "without", "reason"),
    [(["qwery"], set(), "no extra or group qwery"), (["query"], {"nunba"}, "requirements.lock lacks nunba")],
)
def test_unknown_names_are_refused(parts: list[str], without: set[str], reason: str) -> None:
    with pytest.raises(SystemExit, match=reason):
        part_of_lock(parts, without)
