"""Metrics of the services and of Prometheus."""

from __future__ import annotations

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
