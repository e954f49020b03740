"""Numbers of the protocol, with RocketMQ's names: request codes, answer codes, languages, serialisations."""

from __future__ import annotations

import enum


class RequestCode(enum.IntEnum):
    """Kinds of requests that clients send to name servers and brokers. Notifications (40) come from the server."""

    SEND_MESSAGE = 10
    PULL_MESSAGE = 11
    QUERY_MESSAGE = 12
    QUERY_CONSUMER_OFFSET = 14
    UPDATE_CONSUMER_OFFSET = 15
    SEARCH_OFFSET_BY_TIMESTAMP = 29
    GET_MAX_OFFSET = 30
    GET_MIN_OFFSET = 31
    GET_EARLIEST_MSG_STORETIME = 32
    VIEW_MESSAGE_BY_ID = 33
    HEART_BEAT = 34
    UNREGISTER_CLIENT = 35
    CONSUMER_SEND_MSG_BACK = 36
    END_TRANSACTION = 37
    GET_CONSUMER_LIST_BY_GROUP = 38
    NOTIFY_CONSUMER_IDS_CHANGED = 40
    LOCK_BATCH_MQ = 41
    UNLOCK_BATCH_MQ = 42
    CHECK_CLIENT_CONFIG = 46
    GET_ROUTEINFO_BY_TOPIC = 105
    SEND_MESSAGE_V2 = 310
    SEND_BATCH_MESSAGE = 320
    SEND_REPLY_MESSAGE = 324
    SEND_REPLY_MESSAGE_V2 = 325
    LITE_PULL_MESSAGE = 361
    RECALL_MESSAGE = 370
    QUERY_ASSIGNMENT = 400
    POP_MESSAGE = 200050
    ACK_MESSAGE = 200051
    CHANGE_MESSAGE_INVISIBLETIME = 200053
    NOTIFICATION = 200054


class SlaveCode(enum.IntEnum):
    """Requests of a slave to a name server (103 to 106) and to its master."""

    GET_ALL_TOPIC_CONFIG = 21
    GET_BROKER_CONFIG = 26
    GET_BROKER_RUNTIME_INFO = 28
    GET_ALL_CONSUMER_OFFSET = 43
    GET_ALL_DELAY_OFFSET = 45
    REGISTER_BROKER = 103
    UNREGISTER_BROKER = 104
    GET_BROKER_CLUSTER_INFO = 106
    GET_ALL_SUBSCRIPTION_GROUP_CONFIG = 201
    GET_ALL_MESSAGE_REQUEST_MODE = 402


class TidemarkCode(enum.IntEnum):
    """Requests of Tidemark's own clients, outside RocketMQ's numbers. Bodies are messages of `proto/`."""

    APPEND = 770_001  # AppendStreamRequest; the answer's body is an AppendStreamResponse with a result for each batch


class ResponseCode(enum.IntEnum):
    """Outcomes of requests."""

    SUCCESS = 0
    SYSTEM_ERROR = 1
    SYSTEM_BUSY = 2
    REQUEST_CODE_NOT_SUPPORTED = 3
    FLUSH_DISK_TIMEOUT = 10
    SLAVE_NOT_AVAILABLE = 11
    FLUSH_SLAVE_TIMEOUT = 12
    MESSAGE_ILLEGAL = 13
    SERVICE_NOT_AVAILABLE = 14
    NO_PERMISSION = 16
    TOPIC_NOT_EXIST = 17
    PULL_NOT_FOUND = 19
    PULL_RETRY_IMMEDIATELY = 20
    PULL_OFFSET_MOVED = 21
    QUERY_NOT_FOUND = 22
    SUBSCRIPTION_PARSE_FAILED = 23
    SUBSCRIPTION_NOT_EXIST = 24
    SUBSCRIPTION_NOT_LATEST = 25
    SUBSCRIPTION_GROUP_NOT_EXIST = 26
    INVALID_PARAMETER = 29
    NO_BUYER_ID = 204
    NOT_IN_CURRENT_UNIT = 205
    FLOW_CONTROL = 215
    GO_AWAY = 1500


class Language(enum.IntEnum):
    """Implementations of clients and brokers. Unknown names and numbers count as OTHER."""

    JAVA = 0
    CPP = 1
    DOTNET = 2
    PYTHON = 3
    DELPHI = 4
    ERLANG = 5
    RUBY = 6
    OTHER = 7
    HTTP = 8
    GO = 9
    PHP = 10
    OMS = 11
    RUST = 12
    NODE_JS = 13


class Serialization(enum.IntEnum):
    """Forms of a header; the high byte of a frame's mark."""

    JSON = 0
    ROCKETMQ = 1


LANGUAGE_BY_NAME = {language.name: language for language in Language}
LANGUAGE_BY_NUMBER = {int(language): language for language in Language}
LANGUAGE_NAMES = tuple(language.name for language in Language)  # by number: `Language.name` is slow
VERSION = 479  # V5_3_3: clients choose features by the version of the answering process
