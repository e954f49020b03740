"""The manifests of deploy/kubernetes, as kubectl builds them: `make kubernetes-test`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.unit.deploy.test_kubernetes import FOLDER

PAGE = FOLDER.parents[1] / "docs" / "kubernetes.md"
VALIDATE = ("--from", "kubernetes-validate==1.37.0", "kubernetes-validate")  # has the schemas of each version
VERSIONS = ("1.29", "1.37")

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is missing")


def built(folder: Path) -> str:
    """Return the manifests that `kubectl apply -k` would send."""
    done = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def of_page(tmp_path: Path) -> Path:
    """Return the folder of the kustomization in docs/kubernetes.md, with its components for TLS and replication."""
    page = PAGE.read_text()
    (kustomization,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    components = re.findall(r"^    components: \[(.*)\]\n", page, re.MULTILINE)
    assert len(components) == 2
    shutil.copytree(FOLDER, tmp_path / "tidemark" / "deploy" / "kubernetes")
    (tmp_path / "kustomization.yaml").write_text(f"{kustomization}components: [{', '.join(components)}]\n")
    return tmp_path


@pytest.mark.parametrize("version", VERSIONS)
def test_the_manifests_satisfy_the_schemas(of_page: Path, tmp_path: Path, version: str) -> None:
    for name, folder in (("base", FOLDER / "base"), ("page", of_page)):
        file = tmp_path / f"{name}.yaml"
        file.write_text(built(folder))
        command = [sys.executable, "-m", "uv", "tool", "run", *VALIDATE, "--strict", "-k", version, str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, "WARN" in done.stdout + done.stderr) == (0, False), done.stdout + done.stderr


def test_the_pages_kustomization_sets_images_settings_tls_and_members(of_page: Path) -> None:
    manifests = list(yaml.safe_load_all(built(of_page)))
    (settings,) = (one["data"] for one in manifests if one["kind"] == "ConfigMap")
    assert (settings["TIDEMARK_PIPELINE"], settings["TIDEMARK_ALLOW_PLAINTEXT"]) == ("plain", "false")
    (pod,) = (one["spec"]["template"]["spec"] for one in manifests if one["kind"] == "StatefulSet")
    (stateful,) = (one["spec"] for one in manifests if one["kind"] == "StatefulSet")
    assert (stateful["replicas"], stateful["podManagementPolicy"]) == (3, "Parallel")
    named = {each["name"] for each in pod["containers"] if "TIDEMARK_MEMBER" in str(each.get("env"))}
    assert named == {"writer", "query"}
    mounted = {each["name"] for each in pod["containers"] for one in each["volumeMounts"] if one["mountPath"] == "/tls"}
    assert mounted == {"writer", "query"}
    images = {each["image"] for each in (*pod["initContainers"], *pod["containers"])}
    assert images == {f"registry.example/tidemark/{name}:1" for name in ("writer", "indexer", "query")}


def test_the_monitoring_manifests_are_built() -> None:
    kinds = {one["kind"] for one in yaml.safe_load_all(built(FOLDER / "monitoring"))}
    assert kinds == {"ServiceMonitor", "PrometheusRule"}
