"""Fixtures that several suites share, and the property tests' profile."""

from __future__ import annotations

import os
import signal
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings

from tests.certificates import Authority

_lines: list[str] = []
GOLDEN = Path(__file__).parent / "conformance" / "data"

settings.register_profile(  # the first call of a compiled loop compiles it
    "tidemark", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tidemark")

for service in ("WRITER", "PIPELINE"):  # several run at once: those that are scraped say where
    os.environ[f"TIDEMARK_{service}_METRICS_LISTEN"] = ""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background: children would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _no_log_outlives_its_test() -> Iterator[None]:
    """A service's door that is called in a test sets up logging to a stream that ends with the test."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who signs what services and clients show, in tests of TLS."""
    return Authority(tmp_path_factory.mktemp("tls") / "authority", "Test authority")


@pytest.fixture
def tell() -> Callable[[str], None]:
    """One line for the end of the run: what the exhaustive suites looked at, seeds, counts, times."""
    return _lines.append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _lines:
        terminalreporter.section("told")
        for line in _lines:
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def golden_store(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Unpacks a golden store once a run: golden_store("mixed/store"). Whoever writes to it works on a copy."""
    unpacked: dict[str, Path] = {}

    def unpack(name: str) -> Path:
        if name not in unpacked:
            folder = tmp_path_factory.mktemp(name.replace("/", "-"))
            with tarfile.open(GOLDEN / f"{name}.tar.xz") as archive:
                archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)  # since 3.11.4
                archive.extractall(folder)
            unpacked[name] = folder / Path(name).name
        return unpacked[name]

    return unpack
