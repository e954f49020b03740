"""TopicTable: the topics of this store, as `config/topics.json` has them. Lives on the event loop.

A topic is durable before its first record. A deleted topic leaves a tombstone; its queue numbers go on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import structlog

from tidemark.errors import (
    ArgumentIllegalError,
    TopicExistsError,
    TopicForbiddenError,
    TopicIllegalError,
    TopicNotFoundError,
)
from tidemark.format.dispatch_request import U8Array
from tidemark.format.primitives import MAX_TOPIC_SIZE_BYTES
from tidemark.format.topic_name import FORBIDDEN_TOPICS
from tidemark.store.paths import StorePaths, is_topic_name
from tidemark.store.storage import Storage
from tidemark.store.tombstones import Tombstone, load_tombstones, save_tombstones
from tidemark.store.topics import (
    QUEUE_TYPE,
    SIMPLE_QUEUE,
    TopicConfig,
    attributes_to_create,
    load_config,
    load_topics,
    save_topics,
)

from .encode import u8

log = structlog.get_logger()

MAX_QUEUES = 1024
BROKERS_TOPICS = frozenset(
    {"TBW102", "BenchmarkTest", "RMQ_SYS_TRACE_TOPIC"}
)  # a broker makes them for itself, spec 1.7
BROKERS_PREFIX = "rmq_sys_"


class Topic(NamedTuple):
    """A topic and its bytes as records carry them: length (one byte) and name."""

    config: TopicConfig
    field: U8Array


def _topic(config: TopicConfig) -> Topic:
    name = config.name.encode()
    return Topic(config, u8((len(name) & 0xFF).to_bytes(1, "big") + name))


class TopicTable:
    """All topics. Changes are made one at a time, and are on disk before anybody sees them."""

    def __init__(self, paths: StorePaths, storage: Storage, *, auto_create: bool, default_queues: int) -> None:
        self._path = paths.topics
        self._tombstones_path: Path = paths.tombstones
        self._storage = storage
        self._auto_create = auto_create
        self._default_queues = default_queues
        self._topics = {name: _topic(config) for name, config in load_topics(paths.topics).items()}
        version = (load_config(paths.topics) or {}).get("dataVersion") or {}
        self._counter = int(version.get("counter", 0))
        self._changing = asyncio.Lock()

    def get(self, name: str) -> Topic | None:
        """The topic; None when there is none."""
        return self._topics.get(name)

    def all(self) -> list[TopicConfig]:
        """Every topic, by name."""
        return [self._topics[name].config for name in sorted(self._topics)]

    def require(self, name: str) -> TopicConfig:
        """The topic's configuration, or TopicNotFoundError."""
        topic = self._topics.get(name)
        if topic is None:
            raise TopicNotFoundError(f"there is no topic {name!r}", topic=name)
        return topic.config

    def expect(self, name: str) -> Topic:
        """The topic, or as it will be when a first message creates it.

        raises TopicIllegalError, TopicForbiddenError, TopicNotFoundError where none is created
        """
        topic = self._topics.get(name)
        if topic is None:
            require_topic_name(name)
            if not self._auto_create:
                raise TopicNotFoundError(f"there is no topic {name!r}", topic=name)
            topic = _topic(TopicConfig(name, self._default_queues, self._default_queues))
        elif len(name) > MAX_TOPIC_SIZE_BYTES or name in FORBIDDEN_TOPICS:
            require_topic_name(name)
        return topic

    async def ensure(self, name: str) -> None:
        """Create the topic that `expect` described, if it still does not exist."""
        if name not in self._topics:
            with contextlib.suppress(TopicExistsError):  # made meanwhile, in another shape
                await self.create(name, queues=0, attributes={})

    async def create(self, name: str, *, queues: int, attributes: Mapping[str, str]) -> tuple[TopicConfig, bool]:
        """(the topic, whether it is new). queues: 0 for the default.

        raises TopicExistsError when there is one of another shape; TopicAttributeError, TopicIllegalError
        """
        require_topic_name(name)
        if not 0 <= queues <= MAX_QUEUES:
            raise ArgumentIllegalError(
                f"a topic has 1 to {MAX_QUEUES} queues", argument="queue_count", limit=MAX_QUEUES
            )
        stored = attributes_to_create(attributes)
        async with self._changing:
            existing = self._topics.get(name)
            if existing is not None:
                _require_same(existing.config, queues, stored)
                return existing.config, False
            count = queues or self._default_queues
            config = TopicConfig(name, count, count, attributes=stored)
            await self._save({**self._configs(), name: config})
            self._topics[name] = _topic(config)
            log.info("topic_created", topic=name, queues=count, attributes=stored)
            return config, True

    async def delete(self, name: str, take_ends: Callable[[], Awaitable[tuple[int, dict[int, int]]]]) -> None:
        """Delete the topic. *take_ends* tells the log's end and the topic's next offsets once nothing more comes.

        raises TopicNotFoundError
        """
        async with self._changing:
            self.require(name)
            topic = self._topics.pop(name)  # from here on nothing is admitted
            try:
                physical_offset, next_offsets = await take_ends()
                kept = [stone for stone in load_tombstones(self._tombstones_path) if stone.topic != name]
                stones = [*kept, Tombstone(name, physical_offset, next_offsets)]
                await asyncio.to_thread(save_tombstones, self._tombstones_path, stones, self._storage)
                await self._save(self._configs())
            except BaseException:
                self._topics[name] = topic
                raise
            log.info("topic_deleted", topic=name, physical_offset=physical_offset)

    def _configs(self) -> dict[str, TopicConfig]:
        return {name: topic.config for name, topic in self._topics.items()}

    async def _save(self, configs: Mapping[str, TopicConfig]) -> None:
        self._counter += 1
        await asyncio.to_thread(save_topics, self._path, configs, self._storage, counter=self._counter)


def require_topic_name(name: str) -> None:
    """TopicIllegalError or TopicForbiddenError when clients may not make a topic of this name."""
    if not is_topic_name(name):
        raise TopicIllegalError("a topic's name has letters, digits and %|-_ only, and is not empty", topic=name[:255])
    if len(name) > MAX_TOPIC_SIZE_BYTES:
        raise TopicIllegalError("a topic's name is too long", length=len(name), limit=MAX_TOPIC_SIZE_BYTES)
    if name in FORBIDDEN_TOPICS:
        raise TopicForbiddenError("this topic takes no messages from clients", topic=name)
    if name in BROKERS_TOPICS or name.startswith(BROKERS_PREFIX):
        raise TopicForbiddenError("a broker makes this topic for itself", topic=name)


def _require_same(config: TopicConfig, queues: int, attributes: Mapping[str, str]) -> None:
    same_queues = queues in (0, config.write_queues)
    default = {QUEUE_TYPE: SIMPLE_QUEUE}
    if not same_queues or {**default, **config.attributes} != {**default, **attributes}:
        raise TopicExistsError(
            f"topic {config.name!r} exists in another shape",
            topic=config.name,
            queues=config.write_queues,
            queue_type=config.attributes.get(QUEUE_TYPE, SIMPLE_QUEUE),
        )
