"""Settings of a store that follows a RocketMQ broker."""

from __future__ import annotations

import re
from typing import NamedTuple

from pydantic import Field
from pydantic_settings import BaseSettings

from tidemark.tls.settings import PemFile

_EXAMPLE = "rocketmq://10.0.0.1:9876;10.0.0.2:9876/broker-a"
_SCHEME = "rocketmq"
_ADDRESS = re.compile(r"[^\s/@?#:;,]+:[0-9]{1,5}")
_BROKER = re.compile(r"[%|a-zA-Z0-9._-]{1,127}")  # as RocketMQ checks names


class BrokerUrl(NamedTuple):
    """name_servers: host:port of each. broker: the broker's name."""

    name_servers: tuple[str, ...]
    broker: str


def parse_broker_url(text: str) -> BrokerUrl:
    """Parse rocketmq://NAMESERVER[;NAMESERVER…]/BROKER. Raises ValueError."""
    scheme, _, rest = text.partition("://")
    addresses, _, broker = rest.partition("/")
    name_servers = tuple(address.strip() for address in re.split("[;,]", addresses))
    if scheme != _SCHEME or not all(map(_ADDRESS.fullmatch, name_servers)) or not _BROKER.fullmatch(broker):
        raise ValueError(
            f"the address of a broker to follow is {text!r}: expected its name server and its name, as in {_EXAMPLE}"
        )
    return BrokerUrl(name_servers, broker)


class FollowSettings(BaseSettings):
    """The part of the writer's settings that concerns a followed broker."""

    follow: str = Field(
        "", description=f"copy the log of this RocketMQ broker instead of appending, as in {_EXAMPLE}; empty: off"
    )
    follow_access_key: str = Field("", description="access key for the broker; requires follow_secret_key_file")
    follow_secret_key_file: PemFile = Field(None, description="file with the secret key in its first line")

    @property
    def followed_broker(self) -> BrokerUrl | None:
        """The broker that is followed, if any. Raises ValueError."""
        return parse_broker_url(self.follow) if self.follow else None

    def check_follow(self, *, is_replicated: bool) -> None:
        """Raise ValueError for settings that contradict each other."""
        if bool(self.follow_access_key) != (self.follow_secret_key_file is not None):
            raise ValueError("follow_access_key and follow_secret_key_file must be set together")
        if self.followed_broker is None:
            if self.follow_access_key:
                raise ValueError("follow_access_key is set, but follow is not")
        elif is_replicated:
            raise ValueError("follow is set, and replication is not off: a member of a group cannot follow a broker")
