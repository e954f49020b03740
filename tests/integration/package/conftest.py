"""The wheel, and Python environments in which it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement

from tidemark.store.lock import FolderLock

ROOT = Path(__file__).parents[3]
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


class Installed(NamedTuple):
    """A virtual environment."""

    folder: Path

    @property
    def python(self) -> Path:
        """Return its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        """Return the folder of its distributions."""
        (folder,) = self.folder.glob("lib/python*/site-packages")
        return folder

    def run(self, program: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run *program* in its folder, with no other path, no Java, and only the given environment."""
        command = [str(self.python), "-c", program]
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=240, check=False
        )


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel as it is published, once for all test processes."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "wheel"
    folder.mkdir(exist_ok=True)
    lock = FolderLock(folder / "lock")
    lock.acquire()
    try:
        if not list(folder.glob("*.whl")):
            _call((sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder))
    finally:
        lock.release()
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def client(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Run `pip install "tidemark[client]"`, compiled as pip does, in the versions of requirements.lock."""
    folder = tmp_path_factory.mktemp("client")
    installed = _venv(folder / "venv")
    constraints = folder / "constraints.txt"  # the lock without its hashes, because the wheel has none
    locked = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if line[:1].strip("# ")]
    constraints.write_text("\n".join(line.removesuffix(" \\") for line in locked))
    _call((*_PIP, "--python", installed.python, "install", "--constraint", constraints, f"{wheel}[client]"))
    return installed


@pytest.fixture(scope="session")
def complete(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Install the wheel with the dependencies of `tidemark[all]` from the tests' own environment.

    This saves 1 GB of downloads. Its paths lead to no checkout: .pth files in a folder that a .pth file names are
    ignored,
    including the editable install's.
    """
    installed = _venv(tmp_path_factory.mktemp("complete"))
    _call((*_PIP, "--python", installed.python, "install", "--no-deps", wheel))
    (installed.site_packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return installed


@pytest.fixture(scope="session")
def with_spark(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Install the wheel with only the dependencies of `tidemark[spark]`, linked from the tests' own environment."""
    installed = _venv(tmp_path_factory.mktemp("with-spark"))
    _call((*_PIP, "--python", installed.python, "install", "--no-deps", wheel))
    (ours,) = distributions(name="tidemark", path=[str(installed.site_packages)])
    for name in _needed(ours, {"spark"}, set()) - {"tidemark"}:
        for top in {file.parts[0] for file in distribution(name).files or ()} - {"..", "__pycache__"}:
            link = installed.site_packages / top
            if not link.exists():
                link.symlink_to(Path(sysconfig.get_path("purelib")) / top)
    return installed


def _needed(one: Distribution, extras: set[str], seen: set[str]) -> set[str]:
    """Return the names of *one*, of the distributions that it requires with *extras*, and of their requirements."""
    names = {one.name}
    for requirement in map(Requirement, one.requires or ()):
        wanted = any(not requirement.marker or requirement.marker.evaluate({"extra": extra}) for extra in extras | {""})
        if wanted and str(requirement) not in seen:
            seen.add(str(requirement))
            other = one if requirement.name == one.name else distribution(requirement.name)
            names |= _needed(other, requirement.extras, seen)
    return names


def _venv(folder: Path) -> Installed:
    _call((sys.executable, "-m", "venv", "--without-pip", folder))
    return Installed(folder)


def _call(command: Iterable[str | Path]) -> None:
    done = subprocess.run(tuple(command), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
