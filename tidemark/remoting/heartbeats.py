"""Bodies with subscriptions: HEART_BEAT (34) and CHECK_CLIENT_CONFIG (46)."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple, TypeVar

import orjson

from tidemark.format.primitives import java_hash
from tidemark.remoting.field_table import field_illegal
from tidemark.remoting.frame import Buffer
from tidemark.remoting.json_body import JsonObject, parse_body
from tidemark.remoting.pulling import TAG, parse_tags

INNER_PRODUCER = "CLIENT_INNER_PRODUCER"  # in each Java client's heartbeat; it is no group of the program

Name = TypeVar("Name", bound=enum.StrEnum)


class ConsumeType(enum.StrEnum):
    """Kind of a consumer: ACTIVELY pulls by the program, PASSIVELY pushes to a listener."""

    CONSUME_ACTIVELY = "CONSUME_ACTIVELY"
    CONSUME_PASSIVELY = "CONSUME_PASSIVELY"


class MessageModel(enum.StrEnum):
    """Distribution of messages: to one member of the group, or to each."""

    CLUSTERING = "CLUSTERING"
    BROADCASTING = "BROADCASTING"


class SubscriptionData(NamedTuple):
    """A consumer's filter of one topic. Of several, the one with the highest version is valid."""

    topic: str
    expression: str
    version: int
    expression_type: str = TAG


class ConsumerData(NamedTuple):
    """A consumer group of the client, with its subscriptions."""

    group: str
    consume_type: ConsumeType
    message_model: MessageModel
    consume_from_where: str
    subscriptions: tuple[SubscriptionData, ...]


class HeartbeatData(NamedTuple):
    """The groups of a client."""

    client_id: str
    producer_groups: tuple[str, ...]
    consumers: tuple[ConsumerData, ...]


class ClientConfig(NamedTuple):
    """A subscription that a client wants to have checked before it starts."""

    client_id: str
    group: str
    subscription: SubscriptionData


def parse_heartbeat(body: Buffer) -> HeartbeatData:
    """Parse the body of 34. Unknown members are ignored. Raises FieldIllegalError."""
    found = parse_body(body)
    return HeartbeatData(
        found.text("clientID"),
        tuple(producer.text("groupName") for producer in found.objects("producerDataSet")),
        tuple(_consumer(consumer) for consumer in found.objects("consumerDataSet")),
    )


def heartbeat_body(heartbeat: HeartbeatData) -> bytes:
    """Return the body of 34."""
    consumers = [
        {
            "groupName": consumer.group,
            "consumeType": consumer.consume_type,
            "messageModel": consumer.message_model,
            "consumeFromWhere": consumer.consume_from_where,
            "subscriptionDataSet": list(map(_subscription_data, consumer.subscriptions)),
            "unitMode": False,
        }
        for consumer in heartbeat.consumers
    ]
    producers = [{"groupName": group} for group in heartbeat.producer_groups]
    return orjson.dumps({"clientID": heartbeat.client_id, "producerDataSet": producers, "consumerDataSet": consumers})


def parse_client_config(body: Buffer) -> ClientConfig:
    """Parse the body of 46. Raises FieldIllegalError."""
    found = parse_body(body)
    return ClientConfig(found.text("clientId"), found.text("group"), _subscription(found.object("subscriptionData")))


def client_config_body(config: ClientConfig) -> bytes:
    """Return the body of 46."""
    data = _subscription_data(config.subscription)
    return orjson.dumps({"clientId": config.client_id, "group": config.group, "subscriptionData": data})


def _consumer(found: JsonObject) -> ConsumerData:
    return ConsumerData(
        found.text("groupName"),
        _member(ConsumeType, "consumeType", found.text("consumeType")),
        _member(MessageModel, "messageModel", found.text("messageModel")),
        found.text("consumeFromWhere", ""),
        tuple(_subscription(subscription) for subscription in found.objects("subscriptionDataSet")),
    )


def _subscription(found: JsonObject) -> SubscriptionData:
    return SubscriptionData(
        found.text("topic"),
        found.text("subString"),
        found.integer("subVersion", 0, bits=64),
        found.text("expressionType", TAG),
    )


def _subscription_data(subscription: SubscriptionData) -> dict[str, Any]:
    """Return the JSON of *subscription*, with tags and their hashes, which a RocketMQ broker needs."""
    tags = sorted(parse_tags(subscription.expression) or ()) if subscription.expression_type == TAG else []
    return {
        "classFilterMode": False,
        "topic": subscription.topic,
        "subString": subscription.expression,
        "tagsSet": tags,
        "codeSet": list(map(java_hash, tags)),
        "subVersion": subscription.version,
        "expressionType": subscription.expression_type,
    }


def _member(kind: type[Name], name: str, text: str) -> Name:
    try:
        return kind(text)
    except ValueError:
        raise field_illegal(name, text, " or ".join(kind)) from None
