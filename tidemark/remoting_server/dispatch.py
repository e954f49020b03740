"""Dispatcher: authenticates the caller of each request, and passes the request to the handler of its code."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any

import structlog

from tidemark.access.guard import Caller, Guard
from tidemark.access.identity import MAX_TOKEN_BYTES, Presented
from tidemark.errors import StoreError
from tidemark.remoting.codes import RequestCode, ResponseCode, TidemarkCode
from tidemark.remoting.frame import Frame
from tidemark.remoting.refusal import TOKEN
from tidemark.tracing.request_id import begin_request

from .connection import Connection
from .exchange import Exchange, Handler

log = structlog.get_logger()

_MOST_CALLERS = 64  # of a connection
_CODE_NAMES = {int(code): code.name for code in (*RequestCode, *TidemarkCode)}
_GO_AWAY = "the service is stopping: connect again"


class Dispatcher:
    """The handlers of one server. Lives on its event loop.

    handlers: by request code. is_stopping: requests are refused, with a code that makes clients connect again.
    """

    def __init__(self, guard: Guard) -> None:
        self.handlers: Mapping[int, Handler] = {}
        self.is_stopping = False
        self._guard = guard
        self._anyone = guard.caller(Presented(None, None), address="", action="")

    def handle(self, connection: Connection, frame: Frame) -> Coroutine[Any, Any, None] | None:
        """Answer a request, at once or in the returned coroutine. No error leaves it: each one is an answer."""
        exchange = Exchange(connection, frame, self._anyone)
        try:
            if self.is_stopping:
                exchange.answer(ResponseCode.GO_AWAY, remark=_GO_AWAY)
                return None
            exchange.caller = self._caller(connection, frame)
            handler = self.handlers.get(frame.code)
            if handler is None:
                remark = f" request type {frame.code} not supported"
                exchange.answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
                return None
            rest = handler(exchange)
        except StoreError as error:
            exchange.refuse(error)
        except Exception as error:
            _fail(exchange, error)
        else:
            return None if rest is None else _run(exchange, rest)
        return None

    def _caller(self, connection: Connection, frame: Frame) -> Caller:
        """Return the admitted caller of *frame*. Raises UnauthenticatedError or RateLimitedError."""
        token, callers = frame.fields.get(TOKEN), connection.callers
        caller = callers.get((token, frame.code))
        if caller is not None:
            if not caller.is_open:
                caller.admit()
            return caller
        action = _CODE_NAMES.get(frame.code, str(frame.code))
        presented = Presented(token, connection.certificate)
        caller = self._guard.admit(presented, address=connection.address, action=action)
        if token is None or len(token) <= MAX_TOKEN_BYTES:  # memory for a longer one is not for strangers
            if len(callers) >= _MOST_CALLERS:
                callers.clear()
            callers[token, frame.code] = caller
        return caller


async def _run(exchange: Exchange, rest: Coroutine[Any, Any, None]) -> None:
    try:
        await rest
    except StoreError as error:
        exchange.refuse(error)
    except Exception as error:
        _fail(exchange, error)


def _fail(exchange: Exchange, error: Exception) -> None:
    """Answer a request that a bug has ended."""
    request_id = begin_request(None)
    log.error("request_failed", code=exchange.frame.code, exc_info=error)
    remark = f"an internal error, logged with request_id {request_id}"
    exchange.answer(ResponseCode.SYSTEM_ERROR, remark=remark)
