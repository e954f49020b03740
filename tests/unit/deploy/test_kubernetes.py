"""The manifests of deploy/kubernetes, compared with compose, settings and alert rules; tests/deploy uses kubectl."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.lock import ROOT
from scripts.prometheus_rule import ALERTS, RULE, manifest
from tidemark.settings.unknown import unknown_settings

FOLDER = ROOT / "deploy" / "kubernetes"
CONTAINERS = ("writer", "indexer", "query")
STORE = Path("/data/store")


@pytest.fixture(scope="module")
def pod() -> dict[str, Any]:
    """Return the pod's specification."""
    spec: dict[str, Any] = yaml.safe_load((FOLDER / "base" / "statefulset.yaml").read_text())["spec"]["template"][
        "spec"
    ]
    return spec


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """Return the services of docker-compose.yml."""
    services: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    return services


def container(pod: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = (one for one in pod["containers"] if one["name"] == name)
    return dict(found)


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_container_may_write_the_same_folders_as_in_compose(
    pod: dict[str, Any], compose: dict[str, Any], name: str
) -> None:
    """`config` is a volume of its own in compose, and part of the writable store in the pod's writer."""
    mounts = container(pod, name)["volumeMounts"]
    ours = {Path(one["mountPath"]): one.get("readOnly", False) for one in mounts if one["name"] == "store"}
    for one in mounts:
        if "subPath" in one:
            assert STORE.parent / one["subPath"] == Path(one["mountPath"])
    volumes = [volume.split(":")[1:] for volume in compose[name]["volumes"]]
    theirs = {Path(path): mode == ["ro"] for path, *mode in volumes if Path(path).is_relative_to(STORE)}
    if name == "writer":
        assert theirs.pop(STORE / "config") is False and ours[STORE] is False
    assert ours == theirs


def test_the_first_container_makes_every_mounted_folder(pod: dict[str, Any]) -> None:
    """A folder that kubelet makes for a subPath may be writable by all, which the services refuse."""
    (first,) = pod["initContainers"]
    made = {path.removeprefix("/volume/") for path in first["command"] if path.startswith("/volume/")}
    mounted = {one["subPath"] for each in pod["containers"] for one in each["volumeMounts"] if "subPath" in one}
    assert mounted <= made


def test_every_container_is_restricted_as_in_compose(pod: dict[str, Any]) -> None:
    for each in (*pod["initContainers"], *pod["containers"]):
        assert each["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert each["resources"]["limits"].keys() == {"memory"}
    (user,) = re.findall(r"useradd --uid (\d+)", (ROOT / "Dockerfile").read_text())
    assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsNonRoot"]) == (int(user), True)
    assert pod["automountServiceAccountToken"] is False


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_container_is_checked_as_in_its_image(pod: dict[str, Any], name: str) -> None:
    stage = re.split(r"^FROM ", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    (image,) = (text for text in stage if text.splitlines()[0].endswith(f" AS {name}"))
    (command,) = re.findall(r"^HEALTHCHECK .* CMD (\[.*\])$", image, re.MULTILINE)
    checked = container(pod, name)
    for probe in ("startupProbe", "readinessProbe"):
        assert checked[probe]["exec"]["command"] == yaml.safe_load(command)
    assert checked["image"] == f"tidemark/{name}"


def test_the_settings_are_known_and_no_other_variable_is_set(pod: dict[str, Any]) -> None:
    """The services refuse unknown ones."""
    text = (FOLDER / "base" / "settings.env").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for name in ("tls", "replicated"):
        component = yaml.safe_load((FOLDER / name / "kustomization.yaml").read_text())
        lines += component["configMapGenerator"][0]["literals"]
        (patch,) = component["patches"]
        added = [one["value"] for one in yaml.safe_load(patch["patch"]) if one["path"].endswith("/env")]
        lines += [f"{variable['name']}=" for variables in added for variable in variables]
    settings = dict(line.split("=", 1) for line in lines)
    assert "TIDEMARK_MEMBER" in settings and unknown_settings(settings) == []
    assert all("env" not in each for each in pod["containers"])


def test_the_members_of_a_group_are_the_pods(pod: dict[str, Any]) -> None:
    component = yaml.safe_load((FOLDER / "replicated" / "kustomization.yaml").read_text())
    settings = dict(line.split("=", 1) for line in component["configMapGenerator"][0]["literals"])
    patch = {one["path"]: one["value"] for one in yaml.safe_load(component["patches"][0]["patch"])}
    pods = [f"tidemark-{number}" for number in range(patch["/spec/replicas"])]
    assert settings["TIDEMARK_GROUP_MEMBERS"] == ",".join(f"{name}={name}.tidemark:8081" for name in pods)
    assert settings["TIDEMARK_WRITER_ADDRESS"] == "|".join(f"{name}.tidemark:8081" for name in pods)
    patched = [pod["containers"][number]["name"] for number in (0, 2)]
    assert patched == ["writer", "query"]


def test_services_and_ports_fit_containers_and_the_jobs_of_the_alert_rules(pod: dict[str, Any]) -> None:
    services = list(yaml.safe_load_all((FOLDER / "base" / "services.yaml").read_text()))
    ports = {port["name"]: port["containerPort"] for each in pod["containers"] for port in each["ports"]}
    for port in (port for service in services for port in service["spec"]["ports"]):
        assert ports[port["targetPort"]] == port["port"]
    monitor = yaml.safe_load((FOLDER / "monitoring" / "servicemonitor.yaml").read_text())["spec"]
    scraped = {endpoint["port"] for endpoint in monitor["endpoints"]}
    (key,) = (expression["key"] for expression in monitor["selector"]["matchExpressions"])
    jobs = [
        service["metadata"]["name"]
        for service in services
        if key in service["metadata"].get("labels", {})
        if len(scraped & {port["name"] for port in service["spec"]["ports"]}) == 1
    ]
    assert set(jobs) == set(re.findall(r'job="([^"]+)"', ALERTS.read_text()))


def test_the_prometheus_rule_is_current() -> None:
    """`make docs` writes it: the operator takes the groups of Prometheus' rule file."""
    assert RULE.read_text() == manifest()
    assert yaml.safe_load(manifest())["spec"] == yaml.safe_load(ALERTS.read_text())
