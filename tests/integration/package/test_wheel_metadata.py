"""The wheel's metadata: the page that a package index shows, and the requirements that an installation has."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.metadata import Metadata

from tests.integration.package.conftest import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Metadata:
    """Return the validated metadata."""
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Metadata.from_email(archive.read(name), validate=True)


def test_the_long_description_is_the_readme_without_links_to_files(metadata: Metadata) -> None:
    """The index has no files beside the page. Every word remains, except for pictures and the list of links."""
    assert (metadata.description_content_type, metadata.author) == ("text/markdown", "The Tidemark developers")
    shown = metadata.description or ""
    targets = re.findall(r"\]\(([^)]*)\)", shown)
    assert [target for target in targets if not target.startswith(("https://", "http://"))] == []
    readme = (ROOT / "README.md").read_text().partition("\n## Links\n")[0]
    headings = [line for line in readme.splitlines() if line.startswith("#")]
    assert headings and [line for line in shown.splitlines() if line.startswith("#")] == headings
    assert "pip install" in shown


def test_the_metadata_have_the_extras_and_no_tool(metadata: Metadata) -> None:
    """Tools are in dependency groups, which a wheel does not have."""
    groups = [text for group in PROJECT["dependency-groups"].values() for text in group if isinstance(text, str)]
    tools = {_name(text) for text in groups}
    assert {"ruff", "pytest", "mkdocs-material"} <= tools
    required = {requirement.name for requirement in metadata.requires_dist or ()}
    assert required & tools == {"httpx"}, "the writer asks etcd with it, and tests the services"
    assert set(metadata.provides_extra or ()) == PROJECT["project"]["optional-dependencies"].keys()


def _name(requirement: str) -> str:
    """Return the name only: `pyjwt[crypto]>=2.10` gives `pyjwt`."""
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
