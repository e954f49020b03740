"""`make floors-test`: the tests of clients and of a round trip, with the oldest and with the newest allowed packages.

The environments are made in build/floors. FLOORS_PYTHON is their Python; FLOORS=newest picks one, for Pythons that are
younger than the lowest versions. The exit status is 1 if tests fail.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("FLOORS_PYTHON", sys.executable)
EXTRAS = ".[client,table,writer,query]"  # all that runs without Spark, which has `make spark-versions`
UNIT = ("access", "cli", "client", "query", "remoting", "remoting_server", "tls", "tracing")
SUITES = (
    *("tests/floors", "tests/integration/testing", "tests/integration/writer/test_read_log.py"),
    *(f"tests/unit/{package}" for package in UNIT),
)
NEED_SPARK = tuple(
    f"--deselect=tests/unit/cli/verbs/test_doctor.py::{name}"
    for name in ("test_a_missing_java_fails_where_spark_is_installed", "test_an_old_java_fails")
)
IN_OLD_PACKAGES = (
    *("-W", "ignore::DeprecationWarning", "-W", "ignore::PendingDeprecationWarning"),
    # an old typer has other words for a wrong value
    "--deselect=tests/unit/cli/terminal/test_usage_errors.py::test_an_invalid_value_is_reported_with_its_limit",
)
ENVIRONMENTS = {  # options of `uv pip install`, and of pytest
    "lowest": (("--resolution", "lowest-direct"), IN_OLD_PACKAGES),
    "newest": (("--upgrade",), ()),
}


def passes(name: str) -> bool:
    """Make the environment *name* anew, and run the suites in it."""
    install, options = ENVIRONMENTS[name]
    folder = ROOT / "build" / "floors" / name
    python = str(folder / "bin" / "python")
    _run("-m", "uv", "venv", "--quiet", "--clear", "--python", PYTHON, str(folder))
    uv_install = ("-m", "uv", "pip", "install", "--quiet", "--python", python)
    _run(*uv_install, *install, "--editable", EXTRAS, *(str(one) for one in requirements() if one.name == "pandas"))
    _run(*uv_install, "--group", "test")  # afterwards: pytest's own lower bounds do not matter
    if above := above_bounds(python) if name == "lowest" else []:
        print(f"pyproject.toml allows versions that do not go together: {', '.join(above)}")
        return False
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [python, "-m", "pytest", "-p", "no:cacheprovider", "-q", *options, *NEED_SPARK, *SUITES]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    return done.returncode == 0


def requirements() -> set[Requirement]:
    """Return the requirements of the package with all of its extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = [*project["dependencies"], *(text for extra in project["optional-dependencies"].values() for text in extra)]
    return set(map(Requirement, texts))


def above_bounds(python: str) -> list[str]:
    """Return the installed versions that are higher than their lower bounds in pyproject.toml."""
    list_packages = [sys.executable, "-m", "uv", "pip", "list", "--format", "json", "--python", python]
    listed = json.loads(subprocess.run(list_packages, capture_output=True, check=True).stdout)
    installed = {package["name"]: Version(package["version"]) for package in listed}
    return sorted(
        f"{requirement.name} {installed[requirement.name]} > {specifier.version}"
        for requirement in requirements()
        for specifier in requirement.specifier
        if specifier.operator == ">=" and requirement.name in installed
        if installed[requirement.name] > Version(specifier.version)
    )


def _run(*arguments: str) -> None:
    """Run a program of this environment. Raises CalledProcessError."""
    subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True)


def main() -> int:
    """Return the exit status."""
    chosen = os.environ.get("FLOORS", "lowest,newest").split(",")
    if unknown := set(chosen) - ENVIRONMENTS.keys():
        sys.exit(f"FLOORS names {', '.join(sorted(unknown))}; it takes {', '.join(ENVIRONMENTS)}")
    results = {name: passes(name) for name in chosen}
    for name, good in results.items():
        print(f"{name}: {'passed' if good else 'FAILED'}")
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
