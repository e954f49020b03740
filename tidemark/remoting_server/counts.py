"""RequestCounts: numbers of requests and refused connections, for the services' metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import Metric

from tidemark.metrics.families import number, numbers
from tidemark.remoting.codes import RequestCode, ResponseCode, TidemarkCode

_REQUESTS = {int(code): code.name for code in (*RequestCode, *TidemarkCode)}
_RESPONSES = {int(code): code.name for code in ResponseCode}
_OTHER = "OTHER"  # clients choose the numbers of requests, so unknown ones share a label


class RequestCounts:
    """Counters that the event loop increments and the metrics listener reads."""

    def __init__(self) -> None:
        self._answered: Counter[tuple[int, int]] = Counter()
        self._refused: Counter[str] = Counter()

    def count(self, request_code: int, response_code: int) -> None:
        """Count an answered request."""
        self._answered[request_code if request_code in _REQUESTS else -1, response_code] += 1

    def refuse(self, reason: str) -> None:
        """Count a connection that was closed without an answer."""
        self._refused[reason] += 1

    def families(self, connections: int) -> Iterator[Metric]:
        """Yield the metric families."""
        yield number("tidemark_remoting_connections", connections)
        answered = [
            ((_REQUESTS.get(request, _OTHER), _RESPONSES.get(response, _OTHER)), count)
            for (request, response), count in list(self._answered.items())
        ]
        yield numbers("tidemark_remoting_requests_total", answered)
        refused = [((reason,), count) for reason, count in list(self._refused.items())]
        yield numbers("tidemark_remoting_refused_connections_total", refused)
