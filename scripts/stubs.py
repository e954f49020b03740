"""Writes the Python modules of proto/ to FOLDER/tidemark/v1: python -m scripts.stubs FOLDER

`make sync` installs protoc into the virtual environment's folder `protoc`, because it requires an old protobuf. The
plugin mypy-protobuf is a program of its own, so it is the one of requirements.lock.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from scripts.lock import ROOT

PROTOS = sorted((ROOT / "proto" / "tidemark" / "v1").glob("*.proto"))
PROTOC = Path(sys.prefix) / "protoc"


def write_stubs(target: Path) -> None:
    """Write modules, their types and the services' types. Raises CalledProcessError."""
    paths = sysconfig.get_paths()
    programs = os.pathsep.join((paths["scripts"], os.environ.get("PATH", "")))
    command = [
        *(sys.executable, "-W", "ignore::UserWarning", "-m", "grpc_tools.protoc"),  # it imports pkg_resources
        *(f"--proto_path={folder}" for folder in (ROOT / "proto", paths["purelib"])),  # the latter: google/rpc
        *(f"--{kind}_out={target}" for kind in ("python", "pyi", "grpc_python", "mypy_grpc")),
        *map(str, PROTOS),
    ]
    environment = {**os.environ, "PATH": programs, "PYTHONPATH": str(PROTOC)}
    subprocess.run(command, check=True, env=environment, timeout=60)  # noqa: S603 - our own tools


if __name__ == "__main__":
    write_stubs(Path(sys.argv[1]))
