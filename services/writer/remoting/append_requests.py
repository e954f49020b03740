"""AppendRequests: batches of Tidemark's own clients, in the messages of gRPC's AppendStream."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from tidemark.errors import ArgumentIllegalError, StoreError
from tidemark.remoting.codes import TidemarkCode
from tidemark.remoting_server.connection import Connection
from tidemark.remoting_server.exchange import Exchange, Handler
from tidemark.v1.commit_log_pb2 import AppendBatchResponse, AppendStreamResponse

from ..admission.append_request import Received
from ..batch.batch import Batch
from ..submission.answers import rpc_status_of
from ..submission.batch_submitter import BatchSubmitter, Sender
from .append_body import entries_of

Respond = Callable[[AppendBatchResponse, Batch], None]


class AppendRequests:
    """Submits the batches of a request, and answers when all of them are stored or refused.

    Batches of one connection are submitted in the order of their arrival, as on a gRPC stream: while one waits, as for
    the creation of its topic, all later ones wait behind it.
    """

    def __init__(self, submitter: BatchSubmitter, respond: Respond) -> None:
        self._submitter = submitter
        self._respond = respond
        self._waiting: dict[Connection, deque[_Append]] = {}  # of the connections with a batch that waits

    def handlers(self) -> dict[int, Handler]:
        """Return the handlers by request code."""
        return {TidemarkCode.APPEND: self._append}

    def _append(self, exchange: Exchange) -> Coroutine[Any, Any, None] | None:
        try:
            batches = entries_of(exchange.frame.body)
        except DecodeError:
            raise ArgumentIllegalError("the body is not a valid AppendStreamRequest", argument="body") from None
        connection = exchange.connection
        results = _Results(exchange, len(batches), self._respond)
        sender = Sender(exchange.caller, connection.host)
        if connection in self._waiting:
            self._waiting[connection] += [_Append(sender, *entry, results) for entry in batches]
            return None
        for at, (number, received) in enumerate(batches):
            rest = self._submit(sender, number, received, results)
            if rest is not None:
                first, *others = (_Append(sender, *entry, results) for entry in batches[at:])
                waiting = self._waiting[connection] = deque(others)
                return self._finish(connection, first, rest, waiting)
        return None

    def _submit(
        self, sender: Sender, number: int, received: Received, results: _Results
    ) -> Coroutine[Any, Any, None] | None:
        """Submit a batch; return the rest of the work."""
        try:
            return self._submitter.submit_now(sender, received, partial(results.add, number))
        except StoreError as error:
            results.refuse(number, error)
            return None

    async def _finish(
        self,
        connection: Connection,
        append: _Append,
        rest: Coroutine[Any, Any, None] | None,
        waiting: deque[_Append],
    ) -> None:
        """Do the rest of *append*, and then submit those that came meanwhile."""
        try:
            while True:
                if rest is not None:
                    try:
                        await rest
                    except StoreError as error:
                        append.results.refuse(append.number, error)
                if not waiting:
                    return
                append = waiting.popleft()
                rest = self._submit(*append)
        finally:
            del self._waiting[connection]


class _Append(NamedTuple):
    """A batch of a request."""

    sender: Sender
    number: int  # correlation id
    received: Received
    results: _Results


class _Results:
    """The results of one request, answered together."""

    def __init__(self, exchange: Exchange, count: int, respond: Respond) -> None:
        self._exchange = exchange
        self._left = count
        self._respond = respond
        self._response = AppendStreamResponse()
        if not count:
            self._answer()

    def add(self, number: int, batch: Batch) -> None:
        """Add the result of a batch that is stored or has failed."""
        if batch.error is not None:
            self.refuse(number, batch.error)
            return
        result = self._response.results.add()
        result.correlation_id = number
        self._respond(result.appended, batch)
        self._added()

    def refuse(self, number: int, error: StoreError) -> None:
        """Add the result of a refused batch."""
        self._response.results.add(correlation_id=number, error=rpc_status_of(error))
        self._added()

    def _added(self) -> None:
        self._left -= 1
        if not self._left:
            self._answer()

    def _answer(self) -> None:
        self._exchange.answer(body=self._response.SerializeToString())
