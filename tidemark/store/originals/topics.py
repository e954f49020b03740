"""`config/topics.json` in RocketMQ's form (docs/format.md §9): topics, their queues, permissions and attributes."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from tidemark.errors import CorruptStoreError, TopicAttributeError
from tidemark.store.originals.checked_copy import FileRules, Version, read_checked, write_checked
from tidemark.store.storage import Storage

PERMISSION_READ, PERMISSION_WRITE = 4, 2
QUEUE_TYPE = "queue.type"
SIMPLE_QUEUE, BATCH_QUEUE = "SimpleCQ", "BatchCQ"
_UNQUOTED_KEY = re.compile(rb"([{,]\s*)(-?\d+)(\s*:)")
_ENUMS: dict[str, tuple[str, ...]] = {
    QUEUE_TYPE: (SIMPLE_QUEUE, BATCH_QUEUE),
    "cleanup.policy": ("DELETE", "COMPACTION"),
    "message.type": ("UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED"),
}
_RESERVE_TIME = "reserve.time"
_HONOURED: dict[str, tuple[str, ...]] = {  # RocketMQ has more values; a topic with one of those keeps it
    QUEUE_TYPE: (SIMPLE_QUEUE, BATCH_QUEUE),
    "cleanup.policy": ("DELETE",),
    "message.type": ("NORMAL", "UNSPECIFIED"),
    _RESERVE_TIME: ("-1",),  # the retention of the store's log applies
}
_UNCHANGEABLE = (QUEUE_TYPE, "cleanup.policy")


class TopicConfig(NamedTuple):
    """Configuration of one topic."""

    name: str
    read_queues: int
    write_queues: int
    permission: int = PERMISSION_READ | PERMISSION_WRITE
    attributes: Mapping[str, str] = {}
    order: bool = False
    filter_type: str = "SINGLE_TAG"
    sys_flag: int = 0

    @property
    def is_batch(self) -> bool:
        """True if the topic's queues are BatchConsumeQueues."""
        return self.attributes.get(QUEUE_TYPE, SIMPLE_QUEUE) == BATCH_QUEUE

    @property
    def queues(self) -> int:
        """Number of existing queues: the greater of read and write queues."""
        return max(self.read_queues, self.write_queues)


def loads_lenient(data: bytes) -> Any:
    """Parse JSON whose integer keys may be unquoted, as fastjson writes them."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return orjson.loads(_quote_keys(data))


def _quote_keys(data: bytes) -> bytes:
    pieces = re.split(rb'("(?:[^"\\]|\\.)*")', data)  # odd pieces are strings and stay unchanged
    return b"".join(piece if i % 2 else _UNQUOTED_KEY.sub(rb'\1"\2"\3', piece) for i, piece in enumerate(pieces))


def load_config(path: Path) -> Any:
    """Return the content of a config file; None if it does not exist.

    If the file is damaged, its checked copy is used; without a copy (in a broker's store), its `.bak`.
    Raises CorruptStoreError if files exist but none can be read.
    """
    choice = read_checked(path, CONFIG_FORM)
    if choice.has_copy:
        return None if choice.data is None else loads_lenient(choice.data)
    found = False
    for candidate in (path, path.with_name(path.name + ".bak")):
        try:
            data = candidate.read_bytes()
        except FileNotFoundError:
            continue
        if not data.strip():
            continue
        found = True
        try:
            return loads_lenient(data)
        except orjson.JSONDecodeError:
            continue
    if found:
        raise CorruptStoreError(f"neither {path} nor its .bak can be read", path=str(path))
    return None


def save_config(path: Path, content: Any, storage: Storage) -> None:
    """Write a config file and its checked copy, durably. The previous content stays as `.bak` if it could be read.

    A file that was torn by a crash of another program must not replace the `.bak` that is read in its place.
    """
    write_checked(path, orjson.dumps(content, option=orjson.OPT_INDENT_2), storage, keep_previous=is_config(path))


def _parse_config(data: bytes) -> dict[str, Any]:
    content = loads_lenient(data)
    if not isinstance(content, dict):
        raise TypeError("a config file must be a JSON object")
    return content


def _data_version(content: dict[str, Any]) -> Version | None:
    """Return RocketMQ's DataVersion, which grows with each write; None if the file has none, as of old brokers."""
    version = content.get("dataVersion")
    return (int(version["counter"]), int(version.get("timestamp", 0))) if version else None


CONFIG_FORM = FileRules(_parse_config, _data_version, shared=True)


def is_config(path: Path) -> bool:
    """Return True if the file exists and is readable as a config file."""
    try:
        return loads_lenient(path.read_bytes()) is not None
    except (FileNotFoundError, orjson.JSONDecodeError):
        return False


def load_topics(path: Path) -> dict[str, TopicConfig]:
    """Return the topics by name; {} without a file. CorruptStoreError: the file is invalid."""
    content = load_config(path)
    try:
        table = (content or {}).get("topicConfigTable") or {}
        return {name: _decode_topic(name, entry) for name, entry in table.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise CorruptStoreError(f"{path} is not a table of topics", path=str(path)) from error


def _decode_topic(name: str, entry: Mapping[str, Any]) -> TopicConfig:
    return TopicConfig(
        name=name,
        read_queues=int(entry.get("readQueueNums", 16)),
        write_queues=int(entry.get("writeQueueNums", 16)),
        permission=int(entry.get("perm", 6)),
        attributes=dict(entry.get("attributes") or {}),
        order=bool(entry.get("order", False)),
        filter_type=str(entry.get("topicFilterType", "SINGLE_TAG")),
        sys_flag=int(entry.get("topicSysFlag", 0)),
    )


def save_topics(path: Path, topics: Mapping[str, TopicConfig], storage: Storage, *, counter: int) -> None:
    """Write all topics, durably. counter: number of their changes."""
    table = {
        name: {
            "attributes": dict(sorted(topic.attributes.items())),
            "order": topic.order,
            "perm": topic.permission,
            "readQueueNums": topic.read_queues,
            "topicFilterType": topic.filter_type,
            "topicName": name,
            "topicSysFlag": topic.sys_flag,
            "writeQueueNums": topic.write_queues,
        }
        for name, topic in sorted(topics.items())
    }
    version = {"counter": counter, "stateVersion": 0, "timestamp": time.time_ns() // 1_000_000}
    save_config(path, {"dataVersion": version, "topicConfigTable": table}, storage)


def attributes_to_create(asked: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes to store for a create request, whose names may begin with `+`.

    Raises TopicAttributeError with RocketMQ's messages (docs/format.md §9).
    """
    attributes: dict[str, str] = {}
    for signed, value in asked.items():
        if signed.startswith("-"):
            raise TopicAttributeError(f"only add attribute is supported while creating topic. key: {signed[1:]}")
        name = signed.removeprefix("+")
        if not name or name[0] in "+-":
            raise TopicAttributeError("kv string format wrong.")
        if name in attributes:
            raise TopicAttributeError(f"alter duplication key. key: {name}")
        _require_known(name)
        _require_value(name, value)
        attributes[name] = value
    return attributes


def attributes_to_alter(current: Mapping[str, str], asked: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes to store after an alter request: `+name` sets a value, `-name` removes it.

    Raises TopicAttributeError with RocketMQ's messages (docs/format.md §9), in its order: syntax, absent names, values.
    """
    changes: dict[str, str | None] = {}
    for signed, value in asked.items():
        sign, name = signed[:1], signed[1:]
        if not name or "+" in name or "-" in name:
            raise TopicAttributeError("kv string format wrong.")
        if name in changes:
            raise TopicAttributeError(f"alter duplication key. key: {name}")
        if sign not in ("+", "-"):
            raise TopicAttributeError(f"wrong format key: {name}")
        if sign == "-" and name not in current:
            raise TopicAttributeError(f"attempt to delete a nonexistent key: {name}")
        changes[name] = value if sign == "+" else None
    for name, new in changes.items():
        _require_known(name)
        if name in _UNCHANGEABLE:
            raise TopicAttributeError(f"attempt to update an unchangeable attribute. key: {name}")
        if new is not None:
            _require_value(name, new)
    attributes = {**current, **changes}
    return {name: value for name, value in attributes.items() if value is not None}


def _require_known(name: str) -> None:
    if name not in _ENUMS and name != _RESERVE_TIME:
        raise TopicAttributeError(f"unsupported key: {name}")


def _require_value(name: str, value: str) -> None:
    """Raise TopicAttributeError for a value that RocketMQ does not allow, or that has no effect in this store."""
    if name in _ENUMS:
        if value not in _ENUMS[name]:
            raise TopicAttributeError(f"value is not in set: [{', '.join(_ENUMS[name])}]")
    elif not re.fullmatch(r"-1|[0-9]{1,19}", value) or int(value) >= 1 << 63:
        raise TopicAttributeError("value is not in range(-1, 9223372036854775807)")
    if value not in _HONOURED[name]:
        raise TopicAttributeError(
            f"{name}={value} is not supported, because it has no effect in this store: use {name}="
            f"{' or '.join(_HONOURED[name])}, or leave the attribute out",
            name=name,
            value=value,
        )


class TopicsFile:
    """topics.json for a frequent reader, which loads the file again only after a change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = os.fspath(path)  # a Path would make its text at each look
        self._known: tuple[tuple[int, int, int] | None, dict[str, TopicConfig]] = (None, {})

    def topics(self) -> dict[str, TopicConfig]:
        """Return the current topics by name. The mapping is shared: do not change it.

        Thread-safe: each call returns the content that it has compared with the file itself.
        """
        try:
            status = os.stat(self._name)
            signature = (status.st_ino, status.st_mtime_ns, status.st_size)
        except FileNotFoundError:  # while a broker writes the file, its previous content is in `.bak`
            signature = (0, 0, 0)
        seen, topics = self._known
        if signature != seen:
            topics = load_topics(self._path)
            self._known = signature, topics
        return topics
