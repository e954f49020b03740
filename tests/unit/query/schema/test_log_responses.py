from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from services.indexer.query.schema.log_responses import LogAnswer, LogBytesAnswer, LogRecordsAnswer
from tests.built_store import BuiltStore
from tests.unit.query.schema.described import require_described
from tests.unit.query.served_app import ServedApp


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServedApp]:
    """A log of two files, with a blank end."""
    store = BuiltStore(tmp_path, log_file_size=1024)
    store.topic("orders")
    for _ in range(3):
        store.append("orders", b"x" * 350)
    store.publish()
    with ServedApp(store) as served:
        yield served


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/v1/log", LogAnswer),
        ("/v1/log?limit=1", LogAnswer),
        ("/v1/log/records?from=0", LogRecordsAnswer),
        ("/v1/log/records?from=7", LogRecordsAnswer),
        ("/v1/log/bytes?from=3", LogBytesAnswer),
    ],
)
def test_log_answers_match_their_schema(service: ServedApp, path: str, model: type[BaseModel]) -> None:
    require_described(model, service.get(path).json())
