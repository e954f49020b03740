"""AccessInterceptor: authenticates the caller and checks its rights before a method of this API runs."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple

import grpc

from tidemark.access.guard import Caller, Guard
from tidemark.access.identity import Presented
from tidemark.access.right import KNOWN_ACTIONS, Action, Right, on_group, on_store, on_topic
from tidemark.errors import StoreError
from tidemark.status import status_of
from tidemark.v1 import commit_log_pb2, replication_pb2, topics_pb2

from .client_host import address_of
from .wrapped_handlers import Context, Continuation, Stream, Unary, around, is_ours

CALLER: ContextVar[Caller] = ContextVar("caller")  # of the current call; the interceptor sets it for each call
_DONE = "OK"


class _Needs(NamedTuple):
    """The right that a method requires.

    right: a function of the request and the store's name; None: any authenticated caller, or the service checks more.
    """

    right: Callable[[Any, str], Right] | None


def _topic(*actions: Action) -> _Needs:
    return _Needs(lambda request, _: on_topic(request.name, *actions))


def _store(*actions: Action) -> _Needs:
    return _Needs(lambda _, store: on_store(store, *actions))


_KNOWN = _Needs(None)
_EACH_BATCH = _Needs(None)  # CommitLogService requires Pub on the topic of each batch
_GROUP = _Needs(lambda request, _: on_group(request.group, Action.SUB))  # CommitLogService requires Sub on the topic
_EACH_TOPIC = _Needs(None)  # TopicService returns only topics on which the caller has a right
_NEEDS = {
    "CommitLogService": {
        "AppendBatch": _EACH_BATCH,
        "AppendStream": _EACH_BATCH,
        "SendBack": _GROUP,
        "ReadLog": _store(Action.SUB),
        "WatchCommitted": _KNOWN,
        "GetLogInfo": _KNOWN,
    },
    "TopicService": {
        "CreateTopic": _topic(Action.CREATE),
        "DescribeTopic": _topic(*KNOWN_ACTIONS),
        "ListTopics": _EACH_TOPIC,
        "AlterTopic": _topic(Action.UPDATE),
        "DeleteTopic": _topic(Action.DELETE),
        "GetRoute": _topic(*KNOWN_ACTIONS),
    },
    "ReplicationService": {
        "Replicate": _store(Action.SUB),
        "DescribeGroup": _KNOWN,
        "ChecksumLog": _store(Action.SUB),
        "FetchLog": _store(Action.SUB),
        "Promote": _store(Action.UPDATE),
        "HandOver": _store(Action.UPDATE),
    },
}


def _by_method() -> dict[str, _Needs]:
    """Return the needs by full method name. Raises KeyError for a method of the API that _NEEDS lacks."""
    services = {
        **commit_log_pb2.DESCRIPTOR.services_by_name,
        **topics_pb2.DESCRIPTOR.services_by_name,
        **replication_pb2.DESCRIPTOR.services_by_name,
    }
    return {
        f"/{service.full_name}/{method.name}": _NEEDS[service.name][method.name]
        for service in services.values()
        for method in service.methods
    }


class AccessInterceptor(grpc.aio.ServerInterceptor):
    """The interceptor for access control. store_name: the store's name in rights on the whole store."""

    def __init__(self, guard: Guard, *, store_name: str) -> None:
        self._guard = guard
        self._store_name = store_name
        self._needs = _by_method()

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        handler: Any = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or not is_ours(method):
            return handler  # type: ignore[no-any-return]
        return around(handler, partial(self._unary, method), partial(self._stream, method))

    def _unary(self, method: str, behavior: Unary) -> Unary:
        async def answer(request: Any, context: Context) -> Any:
            caller, right = self._admit(method, context), self._right(method, request)
            with _allowed(caller, right):
                return await behavior(request, context)

        return answer

    def _stream(self, method: str, behavior: Stream) -> Callable[..., AsyncIterator[Any]]:
        async def answer(request: Any, context: Context) -> AsyncIterator[Any]:
            caller, right = self._admit(method, context), self._right(method, request)
            with _allowed(caller, right):
                async with contextlib.aclosing(behavior(request, context)) as responses:
                    async for response in responses:  # check again, because rights may change during a stream
                        if right is None:
                            caller.refresh()
                        else:
                            caller.require(right)
                        yield response

        return answer

    def _admit(self, method: str, context: Context) -> Caller:
        guard = self._guard
        presented = Presented(None, None) if guard.access is None else _presented(context)
        caller = guard.admit(presented, address=address_of(context.peer()), action=method.rpartition("/")[2])
        CALLER.set(caller)
        return caller

    def _right(self, method: str, request: Any) -> Right | None:
        needed = self._needs[method].right
        return None if needed is None else needed(request, self._store_name)


@contextlib.contextmanager
def _allowed(caller: Caller, right: Right | None) -> Iterator[None]:
    """Require *right* (ForbiddenError) before the block; afterwards report a change's outcome to the audit log."""
    if right is None:
        yield
        return
    caller.require(right)
    outcome = _DONE
    try:
        yield
    except BaseException as error:
        outcome = status_of(error).reason if isinstance(error, StoreError) else type(error).__name__
        raise
    finally:
        if right.changes:
            caller.note(str(right), outcome, changes=True)


def _presented(context: Context) -> Presented:
    authorization = next(
        (value for name, value in context.invocation_metadata() or () if name == "authorization"), None
    )
    pem = next(iter(context.auth_context().get("x509_pem_cert", ())), None)
    return Presented.of(authorization, None if pem is None else ssl.PEM_cert_to_DER_cert(pem.decode()))
