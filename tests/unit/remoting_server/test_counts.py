"""Counts of requests and refused connections as metric families."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from tidemark.remoting_server.counts import RequestCounts


def lines_of(counts: RequestCounts, connections: int) -> list[str]:
    """Return the samples as the metrics listener serves them."""

    class Counts(Collector):
        def collect(self) -> list[Metric]:
            return list(counts.families(connections))

    registry = CollectorRegistry()
    registry.register(Counts())
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def test_counts_have_rocketmqs_names() -> None:
    counts = RequestCounts()
    for _ in range(2):
        counts.count(310, 0)
    counts.count(310, 13)
    counts.refuse("NOT_JSON")
    assert lines_of(counts, 7) == [
        "tidemark_remoting_connections 7.0",
        'tidemark_remoting_requests_total{request="SEND_MESSAGE_V2",response="SUCCESS"} 2.0',
        'tidemark_remoting_requests_total{request="SEND_MESSAGE_V2",response="MESSAGE_ILLEGAL"} 1.0',
        'tidemark_remoting_refused_connections_total{reason="NOT_JSON"} 1.0',
    ]


def test_unknown_request_codes_share_a_label() -> None:
    """Clients choose them: 2^32 labels would fill the memory."""
    counts = RequestCounts()
    for code in range(100_000, 101_000):
        counts.count(code, 3)
    (line,) = (line for line in lines_of(counts, 0) if "requests_total" in line)
    assert line == 'tidemark_remoting_requests_total{request="OTHER",response="REQUEST_CODE_NOT_SUPPORTED"} 1000.0'
