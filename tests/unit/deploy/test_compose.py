"""docker-compose.yml: names, limits, and the files that Grafana reads. `make compose-test` runs it."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml

from scripts.lock import ROOT

GRAFANA = ROOT / "deploy" / "grafana" / "provisioning"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """Return the services."""
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    return found


def test_every_built_image_is_named_after_its_target(services: dict[str, Any]) -> None:
    for service in services.values():
        if "build" in service:
            assert service["image"] == f"${{STACK_IMAGES:-tidemark}}/{service['build']['target']}:${{STACK_TAG:-local}}"


def test_the_memory_limits_are_those_of_the_pod(services: dict[str, Any]) -> None:
    """A variable overrides each."""
    manifest = ROOT / "deploy" / "kubernetes" / "base" / "statefulset.yaml"
    for each in yaml.safe_load(manifest.read_text())["spec"]["template"]["spec"]["containers"]:
        limit = each["resources"]["limits"]["memory"].removesuffix("i").lower()
        assert services[each["name"]]["mem_limit"] == f"${{STACK_{each['name'].upper()}_MEMORY:-{limit}}}"


def test_every_variable_of_the_stack_is_described_at_the_head() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    head, _, rest = text.partition("\nname: tidemark\n")
    assert set(re.findall(r"\$\{(STACK_\w+)", rest)) == set(re.findall(r"\b(STACK_\w+)", head))


def test_grafana_finds_the_dashboard_and_prometheus(services: dict[str, Any]) -> None:
    mounts = dict(volume.split(":")[:2] for volume in services["grafana"]["volumes"])
    (provider,) = yaml.safe_load((GRAFANA / "dashboards" / "tidemark.yml").read_text())["providers"]
    (source,) = yaml.safe_load((GRAFANA / "datasources" / "prometheus.yml").read_text())["datasources"]
    assert str(PurePosixPath(mounts["./deploy/grafana/tidemark.json"]).parent) == provider["options"]["path"]
    assert mounts["./deploy/grafana/provisioning"] == "/etc/grafana/provisioning"
    port = services["prometheus"]["ports"][0].rpartition(":")[2]
    assert source["url"] == f"http://prometheus:{port}"
    assert set(services["grafana"]["profiles"]) <= set(services["prometheus"]["profiles"])
