"""AppendRequests: batches of Tidemark's own clients, in the messages of gRPC's AppendStream."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from google.protobuf.message import DecodeError

from tidemark.errors import ArgumentIllegalError, StoreError
from tidemark.remoting.codes import TidemarkCode
from tidemark.remoting_server.exchange import Exchange, Handler
from tidemark.v1.commit_log_pb2 import AppendBatchResponse, AppendStreamRequest, AppendStreamResponse

from ..admission.append_request import Received
from ..batch.batch import Batch
from ..submission.answers import rpc_status_of
from ..submission.batch_submitter import BatchSubmitter, Sender

Respond = Callable[[Batch], AppendBatchResponse]


class AppendRequests:
    """Submits the batches of a request, and answers when all of them are stored or refused."""

    def __init__(self, submitter: BatchSubmitter, respond: Respond) -> None:
        self._submitter = submitter
        self._respond = respond

    def handlers(self) -> dict[int, Handler]:
        """Return the handlers by request code."""
        return {TidemarkCode.APPEND: self._append}

    def _append(self, exchange: Exchange) -> Coroutine[Any, Any, None] | None:
        try:
            request = AppendStreamRequest.FromString(bytes(exchange.frame.body))
        except DecodeError:
            raise ArgumentIllegalError("the body is not a valid AppendStreamRequest", argument="body") from None
        results = _Results(exchange, len(request.batches), self._respond)
        sender = Sender(exchange.caller, exchange.connection.host)
        rests: list[tuple[int, Coroutine[Any, Any, None]]] = []
        for entry in request.batches:
            number = entry.correlation_id
            try:
                rest = self._submitter.submit_now(sender, Received.of(entry.batch), partial(results.add, number))
            except StoreError as error:
                results.refuse(number, error)
            else:
                if rest is not None:
                    rests.append((number, rest))
        return self._finish(rests, results) if rests else None

    async def _finish(self, rests: list[tuple[int, Coroutine[Any, Any, None]]], results: _Results) -> None:
        for number, rest in rests:
            try:
                await rest
            except StoreError as error:
                results.refuse(number, error)


class _Results:
    """The results of one request, answered together."""

    def __init__(self, exchange: Exchange, count: int, respond: Respond) -> None:
        self._exchange = exchange
        self._left = count
        self._respond = respond
        self._results: list[AppendStreamResponse.Result] = []
        if not count:
            self._answer()

    def add(self, number: int, batch: Batch) -> None:
        """Add the result of a batch that is stored or has failed."""
        if batch.error is not None:
            self.refuse(number, batch.error)
        else:
            self._add(AppendStreamResponse.Result(correlation_id=number, appended=self._respond(batch)))

    def refuse(self, number: int, error: StoreError) -> None:
        """Add the result of a refused batch."""
        self._add(AppendStreamResponse.Result(correlation_id=number, error=rpc_status_of(error)))

    def _add(self, result: AppendStreamResponse.Result) -> None:
        self._results.append(result)
        self._left -= 1
        if not self._left:
            self._answer()

    def _answer(self) -> None:
        self._exchange.answer(body=AppendStreamResponse(results=self._results).SerializeToString())
