"""The committed dashboard and alert rules match the served and documented metrics."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.dashboard import FILE, PANELS, text
from tidemark.metrics.table import BY_NAME, MetricKind

ROOT = Path(__file__).parents[3]
RULES = (ROOT / "deploy" / "prometheus" / "alerts.yml").read_text()
QUERIES = [query.promql for panel in PANELS for query in panel.queries]
EXPRESSIONS = [*QUERIES, *re.findall(r"^ +expr: (.+)$", RULES, re.MULTILINE)]
ALERTS = re.findall(r"- alert: (\w+)", RULES)


def test_the_committed_dashboard_is_current() -> None:
    """`make docs` writes the dashboard."""
    assert FILE.read_text() == text()


@pytest.mark.parametrize("promql", EXPRESSIONS)
def test_every_metric_in_a_query_is_served(promql: str) -> None:
    """Only histograms have buckets, sums and counts."""
    for name in re.findall(r"\b(?:rocketmq|tidemark)_\w+", promql):
        family = re.sub(r"_(bucket|sum|count)$", "", name)
        assert name in BY_NAME or BY_NAME[family].kind is MetricKind.HISTOGRAM


def test_every_alert_has_a_test_and_a_section_of_the_runbook() -> None:
    """The runbook has no section of an unknown alert."""
    tests = (ROOT / "deploy" / "prometheus" / "alerts_test.yml").read_text()
    assert set(ALERTS) == set(re.findall(r"alertname: (\w+)\n +exp_alerts:\n", tests))
    headings = re.findall(r"^## (.+)$", (ROOT / "docs" / "runbook.md").read_text(), re.MULTILINE)
    assert [heading.title().replace(" ", "") for heading in headings] == ALERTS
    anchors = [heading.lower().replace(" ", "-") for heading in headings]
    assert re.findall(r"runbook: docs/runbook\.md#(.+)$", RULES, re.MULTILINE) == anchors
