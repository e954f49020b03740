"""The units of deploy/systemd, read without systemd; tests/deploy checks them with systemd itself."""

from __future__ import annotations

import configparser
import importlib.util
import os
import re
from pathlib import Path

import pytest

from tidemark.settings.effective import environment_of
from tidemark.settings.registry import SERVICES
from tidemark.settings.unknown import unknown_settings

FOLDER = Path(__file__).resolve().parents[3] / "deploy" / "systemd"
UNITS = ("tidemark-writer.service", "tidemark-pipeline.service", "tidemark-query.service")
HARDENING = ("NoNewPrivileges", "ProtectSystem", "PrivateTmp", "CapabilityBoundingSet", "ReadWritePaths")


class Unit(configparser.RawConfigParser):
    """Sections of a unit; of a repeated name the last value."""

    def __init__(self, name: str) -> None:
        super().__init__(strict=False, delimiters=("=",), comment_prefixes=("#",))
        self.optionxform = str  # type: ignore[assignment,method-assign]
        self.read(FOLDER / name)


def test_all_systemd_units_have_equal_hardening() -> None:
    """All units have the same restrictions."""
    ours = [dict(Unit(name)["Service"]) for name in UNITS]
    own = {"ExecStart", "RestartSec", "TimeoutStopSec"}
    shared = [{key: value for key, value in one.items() if key not in own} for one in ours]
    assert shared[0] == shared[1] == shared[2]
    assert set(HARDENING) <= shared[0].keys()
    assert (shared[0]["CapabilityBoundingSet"], shared[0]["ProtectSystem"]) == ("", "strict")


@pytest.mark.parametrize("name", UNITS)
def test_a_systemd_unit_starts_an_existing_entry_point(name: str) -> None:
    """The command is the wheel's entry point."""
    command = Unit(name)["Service"]["ExecStart"].split()
    assert command[:2] == ["/opt/tidemark/bin/python", "-m"]
    assert importlib.util.find_spec(command[2].replace("tidemark_services", "services")) is not None
    assert command[3:] in ([], ["pipeline"], ["query"])
    assert name.removeprefix("tidemark-").removesuffix(".service") in SERVICES


def test_the_systemd_target_includes_every_service() -> None:
    """Stopping the target stops each service."""
    assert Unit("tidemark.target")["Unit"]["Wants"].split() == list(UNITS)
    assert {Unit(name)["Unit"]["PartOf"] for name in UNITS} == {"tidemark.target"}


def test_the_systemd_stop_timeout_exceeds_the_drain_time() -> None:
    """TimeoutStopSec exceeds the default limit of a stop."""
    for name in UNITS:
        assert int(Unit(name)["Service"]["TimeoutStopSec"].removesuffix("s")) >= 60


def test_the_settings_file_has_only_known_settings() -> None:
    """A service would refuse unknown ones."""

    with environment_of(FOLDER / "tidemark.env"):
        ours = {name: value for name, value in os.environ.items() if name.startswith("TIDEMARK_")}
    assert ours and unknown_settings(ours) == []


def test_unit_files_name_only_standard_paths() -> None:
    """There is no path of a development machine."""
    for path in FOLDER.iterdir():
        places = set(re.findall(r"(?<![\w.])/[a-z][\w./-]*", path.read_text()))
        allowed = ("/opt/tidemark", "/var/lib/tidemark", "/etc/tidemark", "/var/cache/tidemark")
        assert {place for place in places if not place.startswith(allowed)} == set(), path.name
