"""TlsState: metrics of a service's certificate and of its TLS files."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from tidemark.tls.reloading import Reloading

from .families import number


class TlsState(Collector):
    """Collector of the metrics of *tls*; a service without TLS has none."""

    def __init__(self, tls: Reloading) -> None:
        self._tls = tls

    def collect(self) -> Iterator[Metric]:
        """Yield the two gauges."""
        yield number("tidemark_tls_reload_failed", self._tls.reload_failed)
        yield number("tidemark_tls_certificate_expires_seconds", self._tls.current.leaf.expires_s)
