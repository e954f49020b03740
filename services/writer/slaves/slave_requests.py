"""SlaveRequests: what slaves ask their name server and their master, which the writer's remoting address both is.

RocketMQ's slaves register every 30 s, and ask for topics and offsets every minute. RocketMQ: SlaveSynchronize.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from tidemark.remoting.codes import Language, ResponseCode, SlaveCode
from tidemark.remoting_server.exchange import Exchange, Handler
from tidemark.store.originals.topics import load_config
from tidemark.store.paths import StorePaths

from .slave_server import SlaveServer

_LAST_WITH_SIGNS = 479  # number of version 5.3.3 in frames
_NO_VERSION = {"stateVersion": 0, "timestamp": 0, "counter": 0}


class Master(NamedTuple):
    """This store as a master. ha_address: of the `SlaveServer`; file_bytes: of the log."""

    name: str
    cluster: str
    address: str
    ha_address: str
    file_bytes: int


class SlaveRequests:
    """Answers for slaves, to which *server* sends the log. Lives on the event loop."""

    def __init__(self, master: Master, paths: StorePaths, server: SlaveServer) -> None:
        self._master = master
        self._paths = paths
        self._server = server

    def handlers(self) -> dict[int, Handler]:
        """Return the handlers by request code."""
        return {
            SlaveCode.REGISTER_BROKER: self._register,
            SlaveCode.UNREGISTER_BROKER: lambda exchange: exchange.answer(),
            SlaveCode.GET_BROKER_CLUSTER_INFO: self._answer_cluster,
            SlaveCode.GET_BROKER_CONFIG: self._answer_config,
            SlaveCode.GET_BROKER_RUNTIME_INFO: self._answer_bounds,
            SlaveCode.GET_ALL_TOPIC_CONFIG: self._answer_topics,
            SlaveCode.GET_ALL_CONSUMER_OFFSET: self._answer_offsets,
            SlaveCode.GET_ALL_DELAY_OFFSET: self._answer_delays,
            SlaveCode.GET_ALL_SUBSCRIPTION_GROUP_CONFIG: _answering({"subscriptionGroupTable": {}}),
            SlaveCode.GET_ALL_MESSAGE_REQUEST_MODE: _answering({"messageRequestModeMap": {}}),
        }

    def _register(self, exchange: Exchange) -> None:
        fields = exchange.frame.fields
        name, number = fields.get("brokerName"), fields.get("brokerId")
        if name != self._master.name or number in (None, "0"):
            remark = (
                f"broker {name} with brokerId {number} cannot register: this is the master of {self._master.name}, and "
                "a slave needs that brokerName, and a brokerId above 0"
            )
            exchange.answer(ResponseCode.SYSTEM_ERROR, remark=remark)
            return
        exchange.answer(fields={"masterAddr": self._master.address, "haServerAddr": self._master.ha_address})

    def _answer_cluster(self, exchange: Exchange) -> None:
        master = self._master
        broker = {"brokerAddrs": {"0": master.address}, "brokerName": master.name, "cluster": master.cluster}
        clusters = {master.cluster: [master.name]}
        exchange.answer(body=orjson.dumps({"brokerAddrTable": {master.name: broker}, "clusterAddrTable": clusters}))

    def _answer_config(self, exchange: Exchange) -> None:
        host, _, port = self._master.ha_address.rpartition(":")
        settings = {"brokerIP2": host, "haListenPort": port, "mappedFileSizeCommitLog": self._master.file_bytes}
        exchange.answer(body="".join(f"{name}={value}\n" for name, value in settings.items()).encode())

    def _answer_bounds(self, exchange: Exchange) -> None:
        begin, end = self._server.bounds()
        table = {"commitLogMinOffset": str(begin), "commitLogMaxOffset": str(end)}
        exchange.answer(body=orjson.dumps({"table": table}))

    async def _answer_topics(self, exchange: Exchange) -> None:
        """Answer 21. Old brokers take attributes only in the form of a change, +name, which later ones would store."""
        self._server.topics_told(exchange.connection.address)  # before a later topic is saved
        content = await asyncio.to_thread(_content, self._paths.topics, {"topicConfigTable": {}})
        if exchange.frame.language is Language.JAVA and exchange.frame.version <= _LAST_WITH_SIGNS:
            for topic in content["topicConfigTable"].values():
                attributes: Mapping[str, str] = topic.get("attributes") or {}
                topic["attributes"] = {f"+{name}": value for name, value in attributes.items()}
        exchange.answer(body=orjson.dumps(content))

    def _answer_offsets(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        """Answer 43, the slave's request after 21."""
        self._server.topics_known(exchange.connection.address)
        return _answer_offsets_of(exchange, self._paths.consumer_offsets)

    def _answer_delays(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        return _answer_offsets_of(exchange, self._paths.delay_offsets)


def _answering(content: dict[str, Any]) -> Handler:
    body = orjson.dumps({**content, "dataVersion": _NO_VERSION})

    def answer(exchange: Exchange) -> None:
        exchange.answer(body=body)

    return answer


async def _answer_offsets_of(exchange: Exchange, path: Path) -> None:
    exchange.answer(body=orjson.dumps(await asyncio.to_thread(_content, path, {"offsetTable": {}})))


def _content(path: Path, empty: dict[str, Any]) -> dict[str, Any]:
    """Return the config file's content, with a version."""
    return {"dataVersion": _NO_VERSION, **(load_config(path) or empty)}
