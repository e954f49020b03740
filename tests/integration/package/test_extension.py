"""The extension of the wheel: every loop that Python calls, with the results and the refusals of numba's functions."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from scripts.wheel_hook import missing_for_extension
from tests.integration.package.conftest import ROOT
from tidemark.format import kernels

pytestmark = [pytest.mark.integration, pytest.mark.slow]
needs_compiler = pytest.mark.skipif(
    bool(missing_for_extension()), reason=f"for the extension: {', '.join(missing_for_extension())} not found"
)
SUITES = ("tests/unit/format", "tests/unit/index", "tests/unit/read", "tests/property")
WITHOUT_NUMBA = """
import sys
from scripts.warm import warm_all
from tidemark.format.kernels import compiled
warm_all()
assert compiled.extension is not None
assert not {"numba", "llvmlite"} & set(sys.modules)
"""
REFUSALS = """
import numpy as np
from tidemark.format.kernels import messages
one, out = np.ones(1, np.int64), np.zeros(10, np.uint8)
for wrong in (np.zeros(20, np.uint8)[::2], np.zeros((2, 20), np.uint8), np.zeros(20, np.int32), b"bytes", None):
    try:
        messages.copy_records(wrong, 0, one, one, out, 0)
    except TypeError as error:
        print(error)
messages.copy_records(np.arange(9, dtype=np.uint8), 0, one, np.arange(5)[1::4], out, 0)  # one number, with a step
assert out.tolist() == [1, *[0] * 9]
"""
OTHER_THREADS = """
import threading, time
import numpy as np
from tidemark.format.check import find_next_record
long_call = threading.Thread(target=find_next_record, args=(np.zeros(1 << 28, np.uint8),), kwargs={"base_offset": 0})
long_call.start()
turns = 0
while long_call.is_alive():
    time.sleep(0.001)
    turns += 1
print(turns)
"""


@pytest.fixture(scope="session")
def extension(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheel's extension alone."""
    folder = tmp_path_factory.mktemp("extension")
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.startswith("_tidemark_loops"))
        archive.extract(name, folder)
    return folder


def test_warming_calls_every_loop_that_python_calls() -> None:
    """The extension has those loops, and `make sync` compiles them."""
    called = {name for source in Path(kernels.__path__[0]).parent.glob("*.py") for name in _calls_of_loops(source)}
    assert len(called) > 30
    script = "from scripts.extension import loops_with_types; print(*(f'{m}.{n}' for m, n in loops_with_types()))"
    assert set(_python(script).split()) == called


@needs_compiler
def test_a_wheel_with_the_loops_does_not_require_numba(wheel: Path) -> None:
    """numba is for other wheels, which are for every platform."""
    with ZipFile(wheel) as archive:
        (metadata,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("/METADATA"))
    assert "Requires-Dist: isal" in metadata
    assert "numba" not in metadata.partition("\n\n")[0]
    assert "none-any" not in wheel.name


@needs_compiler
def test_the_loops_need_no_numba(extension: Path) -> None:
    """It is not even imported."""
    _python(WITHOUT_NUMBA, extension)


@pytest.mark.exhaustive
@needs_compiler
@pytest.mark.timeout(900)
def test_the_suites_of_the_loops_pass_with_the_extension(extension: Path) -> None:
    """Only tests of a loop's parts, which numba alone makes callable, are skipped."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-n0", *SUITES]
    done = subprocess.run(
        command, cwd=ROOT, env=_environment(extension), capture_output=True, text=True, timeout=840, check=False
    )
    assert done.returncode == 0, done.stdout


@needs_compiler
def test_an_array_that_is_none_or_has_gaps_is_refused(extension: Path) -> None:
    """The loops would take other bytes for its own."""
    gaps, *others = _python(REFUSALS, extension).splitlines()
    assert gaps == "the compiled loops take contiguous arrays only"
    assert len(others) == 4


@needs_compiler
def test_other_threads_run_during_a_call(extension: Path) -> None:
    """The loops release the GIL."""
    assert int(_python(OTHER_THREADS, extension)) > 5


def test_an_installation_without_machine_code_names_the_remedy() -> None:
    """Neither the extension nor numba is there."""
    script = "import sys; sys.modules['numba'] = None\nimport tidemark.format.kernels.compiled"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "pip install numba" in done.stderr.splitlines()[-1]


def _calls_of_loops(source: Path) -> set[str]:
    """Return module and name of each loop that the source calls."""
    tree = ast.parse(source.read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == kernels.__name__]
    modules = {alias.asname or alias.name: alias.name for node in imports for alias in node.names}
    functions = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {
        f"{kernels.__name__}.{modules[function.value.id]}.{function.attr}"
        for function in functions
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
        if function.value.id in modules
    }


def _python(script: str, extension: Path | None = None) -> str:
    """Run the script with the checkout's modules; return its output."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=_environment(extension),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _environment(extension: Path | None) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(extension)} if extension else dict(os.environ)
