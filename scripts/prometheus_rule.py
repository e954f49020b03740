"""Writes deploy/kubernetes/monitoring/prometheusrule.yaml from deploy/prometheus/alerts.yml. `make docs` runs it."""

from __future__ import annotations

import textwrap

from scripts.lock import ROOT

ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
RULE = ROOT / "deploy" / "kubernetes" / "monitoring" / "prometheusrule.yaml"
_HEAD = """# Generated from deploy/prometheus/alerts.yml by `make docs`.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: tidemark}
spec:
"""


def manifest() -> str:
    """Return the manifest: the operator takes the groups of Prometheus' own rule file."""
    return _HEAD + textwrap.indent(ALERTS.read_text(), "  ")


if __name__ == "__main__":
    RULE.write_text(manifest())
