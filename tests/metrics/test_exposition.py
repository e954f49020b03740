"""promtool's verdict on the metrics of each real service, and on the alert rules."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.metrics.scrape import WATCHED, Watched

pytestmark = [pytest.mark.integration, pytest.mark.spark]
DEPLOY = Path(__file__).parents[2] / "deploy" / "prometheus"


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
