"""Reading what services and Prometheus serve."""

from __future__ import annotations

import re
from typing import NamedTuple

import httpx

WATCHED = ("writer", "pipeline", "query")


class Watched(NamedTuple):
    """A running stack: address of each service's metrics."""

    addresses: dict[str, str]

    def exposition(self, service: str) -> str:
        """What it serves now."""
        answer = httpx.get(f"http://{self.addresses[service]}/metrics", timeout=30)
        answer.raise_for_status()
        return answer.text


def types(exposition: str) -> dict[str, str]:
    """Type by name of each metric."""
    return dict(re.findall(r"^# TYPE (\w+) (\w+)$", exposition, re.MULTILINE))
