"""Takes the pictures of docs/console.md with a small real stack, real flights and a real browser. `make pictures`."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from playwright.sync_api import Browser

from demo.append import wait_until_visible
from demo.flights import KEY, TAG, flights
from scripts.browser import open_browser
from tidemark.client import BATCH_QUEUE, Producer, Query
from tidemark.local.local_stack import LocalStack

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
LARGEST_BYTES = 150_000
_ROWS = 12_000
_SEGMENT_SIZE = 2 << 20
_SETTINGS = {"TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES": str(_SEGMENT_SIZE)}
_DAMAGED_AT = 300_000  # the first body after this offset is changed
_SETTLED_MS = 1_500
_PLOTTED_MS = 45_000  # time before a picture of the overview, whose plots need some history


class Picture(NamedTuple):
    """One picture file: the page at *place*, on a wide or narrow screen."""

    name: str
    place: str
    dark: bool = False
    narrow: bool = False
    opens: int | None = None  # number of the row that is opened


PICTURES = (
    Picture("overview", "#/"),
    Picture("overview-dark", "#/", dark=True),
    Picture("messages", "#/messages?topic=departures&queue=0&value=120", opens=2),
    Picture("messages-found", "#/messages?topic=departures&find=LAX"),
    Picture("messages-dark", "#/messages?topic=departures&by=key&value=N14228", dark=True),
    Picture("messages-narrow", "#/messages?topic=departures&queue=0&value=120", narrow=True),
    Picture("group", "#/group?name=billing"),
    Picture("log", f"#/log?from={_SEGMENT_SIZE - 160_000}"),
    Picture("log-dark", "#/log", dark=True),
    Picture("log-narrow", f"#/log?from={_SEGMENT_SIZE - 160_000}", narrow=True),
    Picture("damage", "#/damage?place={damaged}"),
)


def main() -> int:
    """Take all pictures. Return 1 if one is larger than LARGEST_BYTES, otherwise 0."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        table = flights().slice(0, _ROWS)
        with LocalStack(data, environment=_SETTINGS) as stack:
            _fill(stack, table)
        _damage(data)
        with LocalStack(data, environment=_SETTINGS) as stack, open_browser() as browser, _load(stack, table):
            _take_all(browser, stack)
    too_large = [path.name for path in FOLDER.glob("*.png") if path.stat().st_size > LARGEST_BYTES]
    if too_large:
        sys.stderr.write(f"larger than {LARGEST_BYTES} bytes: {', '.join(too_large)}\n")
    return 1 if too_large else 0


# -- the store --------------------------------------------------------------------------------------------------------


def _fill(stack: LocalStack, table: pa.Table) -> None:
    """Write two topics of flights, and the offsets of a group that lags."""
    with Producer(stack.writer_address) as producer, Query(stack.query_url) as query:
        for topic, attributes in (("departures", {}), ("departures-batch", BATCH_QUEUE)):
            producer.topics.create(topic, queues=4, attributes=attributes)
        for start in range(0, table.num_rows, 1000):
            for topic in ("departures", "departures-batch"):
                result = producer.send_table(table.slice(start, 1000), topic, key=KEY, tag=TAG, batch_size=50)
        wait_until_visible(query, result.end_physical_offset)
        for queue_id in range(4):
            offset = query.queue("departures", queue_id)["max_offset"] - 37 * queue_id
            query.put(f"/v1/groups/billing/topics/departures/queues/{queue_id}/offset", {"offset": offset})


def _damage(data: Path) -> None:
    """Change one body in the log and delete the index, so that the next pipeline finds the damage."""
    log = data / "commitlog" / f"{0:020d}"
    with log.open("r+b") as file:
        file.seek(_DAMAGED_AT)
        at = file.read(100_000).index(b'"carrier":"')
        file.seek(_DAMAGED_AT + at)
        file.write(b'"carr!er"')
    for folder in ("consumequeue", "batchconsumequeue", "index", "tidemark/indexer"):
        shutil.rmtree(data / folder)


@contextlib.contextmanager
def _load(stack: LocalStack, table: pa.Table) -> Iterator[None]:
    """Send flights at a varying rate until the block ends."""
    stop = threading.Event()

    def send() -> None:
        with Producer(stack.writer_address) as producer:
            for number in range(1_000_000):
                if stop.is_set():
                    return
                rows = table.slice(number * 40 % (_ROWS - 40), 20 + number % 17)
                producer.send_table(rows, "departures", key=KEY, tag=TAG, batch_size=50)
                time.sleep(0.15 + 0.1 * (number // 40 % 3))

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


# -- the browser ------------------------------------------------------------------------------------------------------


def _take_all(browser: Browser, stack: LocalStack) -> None:
    with Query(stack.query_url) as query:
        damaged = query.get("/v1/corruptions")["corruptions"][0]["physical_offset"]
    for picture in PICTURES:
        _take(browser, f"{stack.query_url}/console{picture.place.format(damaged=damaged)}", picture)


def _take(browser: Browser, url: str, picture: Picture) -> None:
    size: Any = {"width": 400, "height": 780} if picture.narrow else {"width": 1280, "height": 720}
    context = browser.new_context(viewport=size, color_scheme="dark" if picture.dark else "light", timezone_id="UTC")
    page = context.new_page()
    page.goto(url)
    page.wait_for_timeout(_PLOTTED_MS if picture.place == "#/" else _SETTLED_MS)
    if picture.opens is not None:
        page.locator(".opener").nth(picture.opens).click()
    page.screenshot(path=FOLDER / f"{picture.name}.png")
    context.close()


if __name__ == "__main__":
    sys.exit(main())
