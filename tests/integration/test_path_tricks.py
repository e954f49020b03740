"""Names that would lead out of the store are refused by every interface that takes names, and no file is created."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from tests.builders import wire_batch
from tests.integration.writer.harness import RunningWriter, refusal_of
from tests.query_server import serve_query
from tidemark.v1 import topics_pb2

pytestmark = pytest.mark.integration
ONE = wire_batch((b"x", b"", 0))
TRICKS = (
    "..",
    ".",
    "",
    "../outside",
    "..\\outside",
    "a/../../outside",
    "/etc/outside",
    "a/b",
    "%2e%2e",  # unescaped it is a name with a percent sign, and no path
    "%2e%2e%2foutside",
    "a\0b",
    "a\n",
    "．．",  # FULLWIDTH FULL STOP
    "․․",  # ONE DOT LEADER
    "‥／outside",  # TWO DOT LEADER, FULLWIDTH SOLIDUS
    "..∕outside",  # DIVISION SLASH
    "оrders",  # CYRILLIC SMALL LETTER O
    "a" * 256,
    "a" * 30_000,
)
HARMLESS = {"%2e%2e", "%2e%2e%2foutside"}  # only characters of names: a folder of just that name


@pytest.fixture(scope="module")
def area(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a store in it, deep enough to detect a way out."""
    return tmp_path_factory.mktemp("area")


@pytest.fixture(scope="module")
def writer(area: Path) -> Iterator[RunningWriter]:
    with RunningWriter(area / "deep" / "store") as running:
        yield running


@pytest.fixture(scope="module")
def client(area: Path, writer: RunningWriter) -> Iterator[httpx.Client]:
    with serve_query(area / "deep" / "store", writer_address=writer.address) as client:
        yield client


@pytest.fixture(autouse=True)
def _nothing_is_made_outside(area: Path, writer: RunningWriter, client: httpx.Client) -> Iterator[None]:
    """Require that every path below the store has an ordinary name, and that there is none elsewhere."""
    yield
    store = area / "deep" / "store"
    outside = [path for path in area.rglob("*") if not path.is_relative_to(store) and path not in store.parents]
    assert outside == []
    assert not Path("/etc/outside").exists()
    queues = {path.name for path in (store / "consumequeue").glob("*")} if (store / "consumequeue").exists() else set()
    assert queues <= HARMLESS


@pytest.mark.parametrize("name", TRICKS, ids=lambda name: ascii(name[:20]))
def test_path_tricks_in_names_are_refused_over_grpc(writer: RunningWriter, name: str) -> None:
    """Append and create refuse them; a name that only resembles a trick is accepted."""
    asks = (
        lambda: writer.append(name, ONE),
        lambda: writer.topics.CreateTopic(topics_pb2.CreateTopicRequest(name=name, queue_count=0), timeout=30),
    )
    for ask in asks:
        if name in HARMLESS:
            ask()
        else:
            assert refusal_of(ask).reason == "TOPIC_ILLEGAL"


@pytest.mark.parametrize("name", TRICKS, ids=lambda name: ascii(name[:20]))
def test_path_tricks_in_names_are_refused_over_http(client: httpx.Client, name: str) -> None:
    """The names are topics to read and append to, and groups, also percent-encoded twice, which gives another name."""
    once, twice = quote(name, safe=""), quote(quote(name, safe=""), safe="")
    answers = [client.get(f"/v1/topics/{encoded}/queues/0/messages") for encoded in (once, twice)]
    answers += [
        client.put(f"/v1/groups/{encoded}/topics/{encoded}/queues/0/offset", json={"offset": 0})
        for encoded in (once, twice)
    ]
    if name not in HARMLESS:
        message = {"messages": [{"body": "eA=="}], "queue_id": 0}
        answers.append(client.post(f"/v1/topics/{once}/messages", json=message))
        answers.append(client.post(f"/v1/groups/{once}/members", json={"topics": ["orders"]}))
        answers.append(client.post("/v1/groups/g/members", json={"topics": [name]}))
    least = 200 if name in HARMLESS else 400
    assert all(least <= answer.status_code < 500 for answer in answers), [answer.status_code for answer in answers]
