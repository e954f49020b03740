"""The committed stubs are the current output of protoc for proto/."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from scripts.lock import ROOT
from scripts.stubs import PROTOC, PROTOS, write_stubs

STUBS = ROOT / "tidemark" / "v1"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run protoc with its plugins as `make proto` does."""
    if not (PROTOC / "grpc_tools").exists():
        pytest.skip("`make sync` installs protoc on Python 3.11 and 3.12")
    out = tmp_path_factory.mktemp("stubs")
    write_stubs(out)
    return out / "tidemark" / "v1"


def test_the_committed_stubs_are_current(written: Path) -> None:
    """Files and texts are the same: after a change of a proto file, run `make proto`."""
    committed = {path.name: path.read_text() for path in STUBS.glob("*_pb2*")}
    assert committed == {path.name: path.read_text() for path in written.glob("*_pb2*")}
    assert PROTOS


def test_the_lower_bounds_are_the_versions_that_the_stubs_need() -> None:
    """A newer protoc in proto/requirements.in raises them in pyproject.toml, too."""
    needed = {
        "protobuf": _version(r"Protobuf Python Version: (\S+)", "*_pb2.py"),
        "grpcio": _version(r"GRPC_GENERATED_VERSION = '(\S+)'", "*_pb2_grpc.py"),
    }
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    requirements = (Requirement(text) for extra in extras.values() for text in extra)
    bounds = {(one.name, str(one.specifier)) for one in requirements if one.name in needed}
    assert bounds == {(name, f">={version}") for name, version in needed.items()}


def _version(pattern: str, names: str) -> str:
    """Return the version that all generated modules name."""
    (version,) = {found for path in STUBS.glob(names) for found in re.findall(pattern, path.read_text())}
    return str(version)
