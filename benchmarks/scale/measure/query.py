"""Measures the query service's cost of requests, bytes and messages: its processor time while one client pulls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil

from benchmarks.clients import Start, run_clients
from benchmarks.indexing import ONCE, index_once
from benchmarks.processes import cpu_s
from benchmarks.producers import PRODUCERS, Load
from benchmarks.pulls import Form, Place, Puller
from benchmarks.scale.measure.pipeline import LARGE, SMALL
from benchmarks.scale.measure.repeat import committed_bytes, forget_built
from benchmarks.stack import running
from tidemark.client import Query
from tidemark.local.local_stack import QUERY

_Client = Callable[[str, Start], None]
_SMALL_PULLS = 3000


def index(stores: dict[Load, Path]) -> None:
    """Index the stores; call it before `measure`."""
    for data in stores.values():
        forget_built(data)
        index_once(data, *ONCE, "--pipeline", "plain")


def measure(stores: dict[Load, Path]) -> dict[str, float]:
    """Return the constants of the query service. The stores must be indexed."""
    a_request = _service_s(stores[SMALL], _small_pulls) / _SMALL_PULLS
    json_messages = PRODUCERS * SMALL.batches * SMALL.messages
    return {
        "query_s_a_request": a_request,
        "query_s_a_byte": _service_s(stores[LARGE], partial(_pull_all, LARGE.topic, Form.RECORDS))
        / committed_bytes(stores[LARGE]),
        "query_s_a_json_message": _service_s(stores[SMALL], partial(_pull_all, SMALL.topic, Form.JSON)) / json_messages,
    }


def _service_s(data: Path, client: _Client) -> float:
    """Return the service's processor seconds while *client* pulls."""
    with running(data, QUERY) as stack:
        service = psutil.Process(stack.services[QUERY].pid)
        run_clients([partial(_warm, stack.query_url)])
        before = cpu_s(service)
        run_clients([partial(client, stack.query_url)])
        return cpu_s(service) - before


def _warm(url: str, start: Start) -> None:
    start()
    with Query(url) as query:
        for path in ("/v1/status", "/v1/topics"):
            query.get(path)


def _small_pulls(url: str, start: Start) -> None:
    with Query(url) as query:
        start()
        for number in range(_SMALL_PULLS):
            query.pull(SMALL.topic, number % PRODUCERS, number, max_messages=1)


def _pull_all(topic: str, form: Form, url: str, start: Start) -> None:
    with Query(url) as query:
        puller = Puller(query, Place(url, topic, PRODUCERS, form))
        start()
        for queue_id in range(PRODUCERS):
            puller.pull_all(topic, queue_id)
