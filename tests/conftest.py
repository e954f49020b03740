"""Fixtures that several suites share, and the property tests' profile."""

from __future__ import annotations

import gc
import os
import signal
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings

from tests.certificates import Authority
from tests.file_differences import explain
from tests.fixed_ports import fixed_port
from tidemark.local import local_stack

_lines: list[str] = []
GOLDEN = Path(__file__).parent / "conformance" / "data"

settings.register_profile(  # the first call of a compiled loop includes its compilation
    "tidemark", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tidemark")

# several services run at once; tests that scrape metrics set the ports themselves
for service in ("WRITER", "PIPELINE"):
    os.environ[f"TIDEMARK_{service}_METRICS_LISTEN"] = ""

# a run in the background ignores SIGINT, and its children would inherit that
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    return explain(left, right) if op == "==" else None


@pytest.fixture(scope="session", autouse=True)
def _ports_stay_free() -> Iterator[None]:
    """Give each `LocalStack` ports that no other process gets before its services listen on them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_stack, "free_port", fixed_port)
        yield


@pytest.fixture(autouse=True)
def _no_log_outlives_its_test() -> Iterator[None]:
    """Undo the logging setup of a service's entry point that a test has called; its stream ends with the test."""
    yield
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def _nothing_stays_frozen() -> Iterator[None]:
    """Undo the `gc.freeze` of services in this process; their files would stay open until its end."""
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return the authority that signs the certificates of services and clients in tests of TLS."""
    return Authority(tmp_path_factory.mktemp("tls") / "authority", "Test authority")


@pytest.fixture(params=["grpc", "remoting"])
def wire(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test once with each wire of the client, in this process and in programs that it starts."""
    chosen: str = request.param
    monkeypatch.setenv("TIDEMARK_CLIENT_WIRE", chosen)
    return chosen


@pytest.fixture
def tell() -> Callable[[str], None]:
    """Print one line at the end of the run: cases of the exhaustive suites, seeds, counts and times."""
    return _lines.append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _lines:
        terminalreporter.section("told")
        for line in _lines:
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def golden_store(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Unpack a golden store once per run: golden_store("mixed/store"). A test that writes must use a copy."""
    unpacked: dict[str, Path] = {}

    def unpack(name: str) -> Path:
        if name not in unpacked:
            folder = tmp_path_factory.mktemp(name.replace("/", "-"))
            with tarfile.open(GOLDEN / f"{name}.tar.xz") as archive:
                # available since 3.11.4
                archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
                archive.extractall(folder)
            unpacked[name] = folder / Path(name).name
        return unpacked[name]

    return unpack
