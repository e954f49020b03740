"""redis-py: XADD to a stream, alone or in pipelines, and XREAD from it."""

from __future__ import annotations

from collections.abc import Sequence

from redis import Redis

from benchmarks.peers.python.load import TOPIC, Load
from benchmarks.peers.python.protocol import RECEIVE_S, Addresses

_FIELD = b"body"
_PIPELINED = 1000  # commands of a pipeline, whose answers are awaited together
_MOST = 1000


class RedisStream:
    """Connections of redis-py with the parser of hiredis. For latencies, a pipeline has the messages due together."""

    def __init__(self, addresses: Addresses, load: Load) -> None:
        host, _, port = addresses["redis"].partition(":")
        self._redis = Redis(host, int(port))
        self._pipeline = self._redis.pipeline(transaction=False)
        self._may_batch = load.may_batch
        self._last = b"0"

    def send(self, body: bytes) -> None:
        self._redis.xadd(TOPIC, {_FIELD: body})

    def begin(self, body: bytes) -> None:
        if not self._may_batch:
            self.send(body)
            return
        self._pipeline.xadd(TOPIC, {_FIELD: body})
        if len(self._pipeline) >= _PIPELINED:
            self._pipeline.execute()

    def push(self) -> None:
        if len(self._pipeline):
            self._pipeline.execute()

    def finish(self) -> None:
        self.push()

    def rewind(self) -> None:
        self._last = b"0"

    def receive(self) -> Sequence[bytes]:
        answer = self._redis.xread({TOPIC: self._last}, count=_MOST, block=int(RECEIVE_S * 1000))
        if not answer:
            return []
        ((_, messages),) = answer
        self._last = messages[-1][0]
        return [fields[_FIELD] for _, fields in messages]

    def close(self) -> None:
        self._redis.close()
