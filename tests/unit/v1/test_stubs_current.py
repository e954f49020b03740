"""The committed stubs are the current output of protoc for proto/."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROTOS = sorted((ROOT / "proto" / "tidemark" / "v1").glob("*.proto"))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run protoc with its plugins as `make proto` does."""
    out = tmp_path_factory.mktemp("stubs")
    packages = sysconfig.get_paths()["purelib"]
    plugins = os.pathsep.join((sysconfig.get_paths()["scripts"], os.environ.get("PATH", "")))
    subprocess.run(
        [
            *(sys.executable, "-m", "grpc_tools.protoc"),
            *(f"--proto_path={ROOT / 'proto'}", f"--proto_path={packages}"),
            *(f"--{kind}_out={out}" for kind in ("python", "pyi", "grpc_python", "mypy_grpc")),
            *map(str, PROTOS),
        ],
        check=True,
        env={**os.environ, "PATH": plugins},
        timeout=60,
    )
    return out / "tidemark" / "v1"


def test_the_committed_stubs_are_current(written: Path) -> None:
    """Files and texts are the same: after a change of a proto file, run `make proto`."""
    committed = {path.name: path.read_text() for path in (ROOT / "tidemark" / "v1").glob("*_pb2*")}
    assert committed == {path.name: path.read_text() for path in written.glob("*_pb2*")}
    assert PROTOS
