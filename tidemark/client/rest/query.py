"""Query: pulls and lookups through the REST API, as JSON dicts or as large binary pages."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, cast
from urllib.parse import quote

import orjson

from tidemark.client.answers import (
    BatchLookupParameters,
    LookupAnswer,
    LookupParameters,
    MessagesAnswer,
    OffsetAnswer,
    PageParameters,
    PullAnswer,
    PullParameters,
    QueueAnswer,
    QueueLimits,
    QueuePlace,
    QueueTableParameters,
    RecordsParameters,
    SearchAnswer,
    SearchParameters,
    TableParameters,
    TablesParameters,
    TableVerify,
    Verify,
    WatermarkAnswer,
)
from tidemark.client.received_message import TopicQueue
from tidemark.client.rest.connections import Answer, Connections, SentRequest
from tidemark.client.rest.page import (
    ARROW,
    RECORDS,
    RecordsPage,
    following_offset,
    has_messages,
    records_page,
    table_of,
)
from tidemark.client.rest.problems import Json, require_success
from tidemark.client.rest.pull_many import many_pages
from tidemark.errors import QueryUnreachableError
from tidemark.tls.credentials import Credentials

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemark.read.messages.arrow_stream import TableForm

T = TypeVar("T")
_JSON = "application/json"
_TABLE_FORM = ("columns", "dictionaries", "compression")  # parameters that only tables have


class Query:
    """Connections to the query service of a store. Errors of the service are raised as the StoreError of their reason.

    url          http://host:port, or those of a group's members, separated by |. Default: TIDEMARK_QUERY_URL, then
                 http://127.0.0.1:8080
    timeout_s    limit for each wait on the network; must be longer than any wait_ms
    credentials  trusted CA, client certificate and token: see `Credentials`. Default: from the environment

    Thread-safe.
    """

    def __init__(
        self, url: str | None = None, *, timeout_s: float = 60.0, credentials: Credentials | None = None
    ) -> None:
        self.url = url or default_url()
        self._connections = Connections(self.url, timeout_s=timeout_s, credentials=credentials)

    @property
    def present_url(self) -> str:
        """Return the address of the service that is used at present, one of `url`."""
        return self._connections.service.url

    @property
    def is_group(self) -> bool:
        """True if the URL names several services, those of a group's members, of which one may be behind another."""
        return self._connections.count > 1

    def watermark(self) -> WatermarkAnswer:
        """Return the watermark and the committed offset."""
        return cast(WatermarkAnswer, self.get("/v1/watermark"))

    def pull(self, topic: str, queue_id: int, offset: int | str, **parameters: Unpack[PullParameters]) -> PullAnswer:
        """Return messages of one queue from *offset* (a number, earliest or latest)."""
        return cast(PullAnswer, self.get(messages_path(topic, queue_id), offset=offset, **parameters))

    def queue(self, topic: str, queue_id: int) -> QueueAnswer:
        """Return the bounds of one queue."""
        return cast(QueueAnswer, self.get(f"/v1/topics/{quote(topic, safe='')}/queues/{queue_id}"))

    def pull_records(
        self, topic: str, queue_id: int, offset: int | str, **parameters: Unpack[RecordsParameters]
    ) -> RecordsPage:
        """Pull the stored records, back to back: the fastest form for high volume. Arguments as for `pull`."""
        path = messages_path(topic, queue_id)
        return records_page(self.answer(path, RECORDS, {"offset": offset, **parameters}))

    def pull_table(
        self, topic: str, queue_id: int, offset: int | str, **parameters: Unpack[TableParameters]
    ) -> pa.Table:
        """Pull a table with one column per field. Arguments as for `pull`, and the table's form: `TableParameters`.

        The schema's metadata has the other values as text, such as `tidemark.next_offset`.
        """
        path = messages_path(topic, queue_id)
        return table_of(self.answer(path, ARROW, {"offset": offset, **parameters}))

    def record_pages(
        self,
        topic: str,
        queue_id: int,
        offset: int | str,
        *,
        wait_ms: int | None = None,
        verify: Verify = "service",
        **parameters: Unpack[PageParameters],
    ) -> Iterator[RecordsPage]:
        """Yield pages of `pull_records` from *offset* to the visible end; with wait_ms, wait there for more, endlessly.

        The service prepares the next page while the caller uses the current one.

        verify: who checks the records: that they belong to the queue, and the CRC of their bodies. "client": here,
            which takes work from the service (without tags only; extra `loops`); "none": no check. The service then
            sends bytes of its files without reading them.
        """
        if verify == "service":
            for answer in self._answers(topic, queue_id, offset, RECORDS, wait_ms, parameters):
                if has_messages(answer.headers):
                    yield records_page(answer)
            return

        def page_of(answer: Answer) -> RecordsPage | None:
            page = records_page(answer)
            return page if verify == "none" or _is_sound(page, topic, queue_id) else None

        for page in self._made_here(
            topic, queue_id, offset, wait_ms, parameters, make=page_of, accept=RECORDS, read=records_page
        ):
            if page.message_count:
                yield page

    def tables(
        self,
        topic: str,
        queue_id: int,
        offset: int | str,
        *,
        wait_ms: int | None = None,
        with_empty: bool = False,
        verify: TableVerify = "service",
        **parameters: Unpack[TablesParameters],
    ) -> Iterator[pa.Table]:
        """Yield pages of `pull_table`, as `record_pages` does.

        with_empty: also yield pages without messages, which may report damage
        verify: "client" also makes the columns here (without tags only), which takes most of the work from the service

        Raises:
            ValueError: with verify="client", a column that does not exist, or a compression: the service then sends
                records as they are stored.
        """
        if verify == "service":
            for answer in self._answers(topic, queue_id, offset, ARROW, wait_ms, parameters):
                if with_empty or has_messages(answer.headers):
                    yield table_of(answer)
            return
        make = partial(_table_of_records, topic=topic, queue_id=queue_id, form=_table_form(parameters))
        of_records = {name: value for name, value in parameters.items() if name not in _TABLE_FORM}
        for table in self._made_here(
            topic, queue_id, offset, wait_ms, of_records, make=make, accept=ARROW, read=table_of, checked=parameters
        ):
            if with_empty or table.num_rows:
                yield table

    def record_pages_of(
        self, queues: Mapping[tuple[str, int], int | str], **parameters: Unpack[QueueLimits]
    ) -> Iterator[tuple[TopicQueue, RecordsPage]]:
        """Yield pages of `pull_records` of many queues, each from its offset to its visible end.

        One request covers up to 256 queues.

        queues  (topic, queue id) → offset; pages come in this order, and again for queues with more than one page
        parameters: max_messages and max_bytes hold for all queues of an answer together
        """
        for part in many_pages(self._connections, queues, RECORDS, parameters):
            if has_messages(part.answer.headers):
                yield part.queue, records_page(part.answer)

    def tables_of(
        self, queues: Mapping[tuple[str, int], int | str], **parameters: Unpack[QueueTableParameters]
    ) -> Iterator[tuple[TopicQueue, pa.Table]]:
        """Yield pages of `pull_table` of many queues, as `record_pages_of` does."""
        for part in many_pages(self._connections, queues, ARROW, parameters):
            if has_messages(part.answer.headers):
                yield part.queue, table_of(part.answer)

    def offset_at(
        self, topic: str, queue_id: int, time: int | str, *, boundary: Literal["lower", "upper"] = "lower"
    ) -> OffsetAnswer:
        """Return the queue offset at a store time: epoch milliseconds or RFC 3339."""
        path = f"/v1/topics/{quote(topic, safe='')}/queues/{queue_id}/offset"
        return cast(OffsetAnswer, self.get(path, time=time, boundary=boundary))

    def by_key(self, topic: str, key: str, **parameters: Unpack[SearchParameters]) -> SearchAnswer:
        """Return a page of messages that have *key*."""
        return cast(SearchAnswer, self.get(f"/v1/topics/{quote(topic, safe='')}/messages", key=key, **parameters))

    def lookup(
        self,
        topic: str,
        *,
        keys: Sequence[str] | None = None,
        unique_keys: Sequence[str] | None = None,
        offsets: Iterable[QueuePlace | tuple[int, int]] | None = None,
        **parameters: Unpack[BatchLookupParameters],
    ) -> LookupAnswer:
        """Look up many messages by one request: by keys, by unique keys, or by (queue id, queue offset).

        `results` has one result for each, in this order, without messages if none is found. A full answer ends after
        `looked_at` results: look up the others again. With offsets, the only options are body_encoding and store.

        Raises:
            ArgumentIllegalError: not exactly one of the three, an empty one, or more than TIDEMARK_QUERY_MAX_LOOKUPS.
            TypeError: *keys* or *unique_keys* is one text.
        """
        if isinstance(keys, str) or isinstance(unique_keys, str):
            raise TypeError("keys or unique_keys is a str: expected a list of them")
        asked = {
            "keys": None if keys is None else list(keys),
            "unique_keys": None if unique_keys is None else list(unique_keys),
            "offsets": None if offsets is None else [_queue_place(place) for place in offsets],
            **parameters,
        }
        body = {name: value for name, value in asked.items() if value is not None}
        return cast(LookupAnswer, self.post(f"/v1/topics/{quote(topic, safe='')}/messages:lookup", body))

    def message(self, offset_msg_id: str, **parameters: Unpack[LookupParameters]) -> MessagesAnswer:
        """Return the messages of one record by its offset message id."""
        return cast(MessagesAnswer, self.get(f"/v1/messages/{quote(offset_msg_id, safe='')}", **parameters))

    def get(self, path: str, **parameters: Any) -> Json:
        """GET any path of the API.

        Raises the StoreError of a problem; UnavailableError without an answer; ValueError for characters in the path
        that must be percent-encoded.
        """
        return cast(Json, orjson.loads(self.answer(path, _JSON, parameters).body))

    def put(self, path: str, body: Json) -> Json:
        """PUT *body* as JSON; return the answer, {} if it is empty. Raises as `get` does."""
        return self._send("PUT", path, orjson.dumps(body))

    def post(self, path: str, body: Json) -> Json:
        """POST *body* as JSON; otherwise like `put`."""
        return self._send("POST", path, orjson.dumps(body))

    def delete(self, path: str) -> Json:
        """DELETE *path* without a body; otherwise like `put`."""
        return self._send("DELETE", path, None)

    def _send(self, method: str, path: str, body: bytes | None) -> Json:
        answer = require_success(self._connections.send(method, path, body, _JSON).answer())
        return cast(Json, orjson.loads(answer.body)) if len(answer.body) else {}

    def answer(self, path: str, accept: str, parameters: Mapping[str, Any]) -> Answer:
        """Return a GET's answer in the form *accept*, not decoded. Raises as `get` does."""
        return require_success(self._connections.get(path, parameters, accept))

    def _made_here(
        self,
        topic: str,
        queue_id: int,
        offset: int | str,
        wait_ms: int | None,
        parameters: Mapping[str, Any],
        *,
        make: Callable[[Answer], T | None],
        accept: str,
        read: Callable[[Answer], T],
        checked: Mapping[str, Any] | None = None,
    ) -> Iterator[T]:
        """Yield what *make* makes of each answer with unchecked records, including empty ones.

        Where it makes None, ask the service for a page in the form *accept*, which *read* reads: the service knows the
        place of each record.

        checked: parameters of such a page, if others than *parameters*
        """
        is_to_go_on = True
        while is_to_go_on:
            is_to_go_on = False
            asked = {**parameters, "verify": "reader"}
            for answer in self._answers(topic, queue_id, offset, RECORDS, wait_ms, asked):
                made = make(answer)
                if made is not None:
                    yield made
                    continue
                begin = int(answer.headers["Tidemark-Requested-Offset"])
                given = {**(parameters if checked is None else checked), "offset": begin}
                page = self.answer(messages_path(topic, queue_id), accept, given)
                yield read(page)
                offset = int(page.headers["Tidemark-Next-Offset"])
                is_to_go_on = offset > begin
                break

    def _answers(
        self,
        topic: str,
        queue_id: int,
        offset: int | str,
        accept: str,
        wait_ms: int | None,
        parameters: Mapping[str, Any],
    ) -> Iterator[Answer]:
        """Yield pages, including empty ones. Request the next page as soon as the current page's end is known.

        A page that breaks off is asked of the group's next service.
        """
        path = messages_path(topic, queue_id)
        breaks_left = self._connections.count - 1

        def ask(offset: int | str) -> tuple[int | str, SentRequest]:
            given = {"offset": offset, "wait_ms": wait_ms, **parameters}
            return offset, self._connections.ask(path, given, accept)

        under_way = deque([ask(offset)])
        try:
            while under_way:
                begin, asked = under_way[0]
                following = following_offset(asked.response().headers, at_end=bool(wait_ms))
                if following is not None:
                    under_way.append(ask(following))
                try:
                    answer = asked.answer()
                except QueryUnreachableError:
                    if not breaks_left:
                        raise
                    breaks_left -= 1
                    _close(under_way)
                    under_way.append(ask(begin))
                    continue
                under_way.popleft()
                breaks_left = self._connections.count - 1
                yield require_success(answer)
        finally:
            _close(under_way)

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    def __enter__(self) -> Query:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _close(under_way: deque[tuple[int | str, SentRequest]]) -> None:
    while under_way:
        under_way.popleft()[1].close()


def _is_sound(page: RecordsPage, topic: str, queue_id: int) -> bool:
    from tidemark.client.rest.sound_records import is_sound  # imported here: it needs numpy

    return is_sound(page, topic, queue_id)


def _table_of_records(answer: Answer, topic: str, queue_id: int, form: TableForm) -> pa.Table | None:
    from tidemark.client.rest.table_of_records import table_of_records  # imported here: it needs numpy and pyarrow

    return table_of_records(answer, topic, queue_id, form)


def _table_form(parameters: TablesParameters) -> TableForm:
    """Return the form of a table that is made of records. Raises as `tables`."""
    from tidemark.read.messages.arrow_stream import TableForm  # imported here: they need numpy and pyarrow
    from tidemark.read.messages.message_columns import require_columns

    if parameters.get("compression") is not None:
        raise ValueError('compression: with verify="client" the service sends records as they are stored')
    columns = parameters.get("columns") or ()
    names = require_columns([columns] if isinstance(columns, str) else columns)
    return TableForm(names, parameters.get("dictionaries", False))


def default_url() -> str:
    """Return TIDEMARK_QUERY_URL, or its default http://127.0.0.1:8080."""
    from tidemark.client.settings import ClientSettings  # imported here: pydantic's import is slow

    return ClientSettings().query_url


def _queue_place(place: QueuePlace | tuple[int, int]) -> QueuePlace:
    if isinstance(place, tuple):
        queue_id, offset = place
        return {"queue_id": queue_id, "offset": offset}
    return place


def messages_path(topic: str, queue_id: int) -> str:
    """Return the path for pulls from one queue."""
    return f"/v1/topics/{quote(topic, safe='')}/queues/{queue_id}/messages"
