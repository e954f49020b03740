"""Metrics of the services and of Prometheus."""

from __future__ import annotations

import re
from typing import NamedTuple

import httpx

WATCHED = ("writer", "pipeline", "query")


class Watched(NamedTuple):
    """A running stack: address of each service's metrics."""

    addresses: dict[str, str]

    def exposition(self, service: str) -> str:
        """Return the metrics that it serves now."""
        answer = httpx.get(f"http://{self.addresses[service]}/metrics", timeout=30)
        answer.raise_for_status()
        return answer.text


def types(exposition: str) -> dict[str, str]:
    """Return the type of each metric by name."""
    return dict(re.findall(r"^# TYPE (\w+) (\w+)$", exposition, re.MULTILINE))
