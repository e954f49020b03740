"""The metrics of each real service, and promtool's verdict on them and on the alert rules."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.metrics.scrape import WATCHED, Watched, types
from tidemark.metrics.table import BOTH, EACH, PIPELINE, ROWS

pytestmark = [pytest.mark.integration, pytest.mark.spark]
DEPLOY = Path(__file__).parents[2] / "deploy" / "prometheus"


@pytest.mark.parametrize("service", WATCHED)
def test_each_service_serves_the_documented_metrics(watched: Watched, service: str) -> None:
    """Metrics and types match; apart from them there are only those of the process."""
    served = types(watched.exposition(service))
    ours = {name: kind for name, kind in served.items() if not name.startswith("process_")}
    its = {service, EACH} if service == PIPELINE else {service, EACH, BOTH}
    assert ours == {row.name: row.kind.value for row in ROWS if row.service in its}
    assert "process_open_fds" in served


@pytest.mark.parametrize("service", WATCHED)
def test_promtool_accepts_the_exposition(watched: Watched, promtool: str, service: str) -> None:
    """Format and names are right."""
    done = subprocess.run(
        [promtool, "check", "metrics"],
        input=watched.exposition(service),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("command", [("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")])
def test_the_alert_rules_are_valid_and_fire_as_tested(promtool: str, command: tuple[str, ...]) -> None:
    """The series for each alert are in alerts_test.yml."""
    *verb, name = command
    done = subprocess.run([promtool, *verb, DEPLOY / name], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout
