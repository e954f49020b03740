"""The scenarios of java/ and go/, and the observations of each: those of a real broker 5.3.3.

A scenario runs on a topic of its own. Both clients observe the same unless *java* or *go* say otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .programs import Observations

JAVA, GO = "java", "go"
BOTH = (JAVA, GO)


@dataclass(frozen=True)
class Scenario:
    """One subcommand of the programs.

    observed       the document of a broker; java, go: members that differ with this client (ABSENT: it has none)
    here           members that differ with Tidemark, for the *reason*
    tidemark_only  why a comparison with a broker means nothing; then *observed* is the document of Tidemark
    """

    name: str
    observed: Observations
    clients: tuple[str, ...] = BOTH
    queues: int = 4
    java: Observations = field(default_factory=dict)
    go: Observations = field(default_factory=dict)
    here: Observations = field(default_factory=dict)
    reason: str = ""
    tidemark_only: str = ""

    def __post_init__(self) -> None:
        assert bool(self.here) == bool(self.reason), f"{self.name}: a difference needs a reason"

    def of_broker(self, client: str) -> Observations:
        """Return the document that *client* prints with a real broker."""
        return _merged(self.observed, {JAVA: self.java, GO: self.go}[client])

    def of_tidemark(self, client: str) -> Observations:
        """Return the document that *client* prints with Tidemark."""
        return _merged(self.of_broker(client), self.here)


ABSENT = object()


def _merged(observed: Observations, others: Mapping[str, Any]) -> Observations:
    return {name: value for name, value in {**observed, **others}.items() if value is not ABSENT}


def _bodies(first: int, last: int, step: int = 1) -> list[str]:
    return [f"m-{number:02d}" for number in range(first, last, step)]


def _pull(status: str, offsets: range, following: int, *, maximum: int = 10) -> Observations:
    return {"status": status, "offsets": list(offsets), "next": following, "min": 0, "max": maximum}


_NONE = range(0)
_SENT = {
    "sent": 12,
    "statuses": ["SEND_OK"],
    "queues": [0, 1, 2, 3],
    "offsets_dense": True,
    "message_ids": 12,
    "offset_message_ids": 12,
    "transaction_id_is_message_id": True,
}
_GO_ERROR = {"error_class": "errorString"}  # Go's client has no types for most errors
_DEAD = {"dead": ["m-00"], "dead_queues": [0], "dead_retry_topic": True, "dead_reconsume_times": [3]}
_SUSPENDED = ["m-00 0", "m-00 1", "m-00 2", *(f"{body} 0" for body in _bodies(1, 5))]

_SENDS = (
    Scenario("send_sync", {**_SENT, "read": _bodies(0, 12)}),
    Scenario("send_async", {**_SENT, "answered": True, "errors": 0, "read": _bodies(0, 12)}),
    Scenario("send_oneway", {"read": _bodies(0, 12)}),
    Scenario("send_to_queue", {**_SENT, "queues": [2], "read_in_order": _bodies(0, 12)}),
    Scenario(
        "send_by_key",
        {
            **_SENT,
            "queues": ABSENT,
            "queues_by_key": [1, 1, 1],
            "bodies_by_key": {f"order-{key}": _bodies(key, 12, 3) for key in range(3)},
        },
    ),
    Scenario(
        "send_batch",
        {
            "status": "SEND_OK",
            "first_offset": 0,
            "message_ids": 12,
            "offset_message_ids": 12,
            "queues_read": 1,
            "read_in_order": _bodies(0, 12),
            "numbers_read": 12,
            "tags_read": 12,
        },
        go={"message_ids": 1},
    ),
    Scenario(
        "send_delayed",
        {
            "status": "SEND_OK",
            "delayed": True,
            "topic_kept": True,
            "queue": 1,
            "offset": 0,
            "body": "m-00",
            "colour": "red",
            "level": 1,
            "message_id_kept": True,
        },
    ),
    Scenario("send_compressed", {"status": "SEND_OK", "equal": True, "stored_smaller": True}),
    Scenario(
        "send_properties",
        {
            "status": "SEND_OK",
            "body": [0, 1, 2, -1, -2],
            "tags": "TagA",
            "keys": "key-1 key-2",
            "colour": "red",
            "size": "Straße 漢字",
            "flag": 7,
            "reconsume_times": 0,
            "message_id_kept": True,
            "born_host": "127.0.0.1",
            "born_before_stored": True,
        },
    ),
    Scenario(
        "send_too_large",
        {"error_class": "MQBrokerException", "response_code": 13, "next_send": "SEND_OK"},
        go=_GO_ERROR,
    ),
    Scenario(
        "send_queue_out_of_range",
        {"error_class": "MQBrokerException", "response_code": 29, "next_send": "SEND_OK"},
        go=_GO_ERROR,
    ),
    Scenario(
        "send_unknown_topic",
        {"error_class": "MQClientException", "response_code": 10005, "next_send": "SEND_OK"},
        go={**_GO_ERROR, "response_code": ABSENT},
    ),
    Scenario(
        "send_in_transaction",
        {"error_class": "MQClientException", "response_code": -1, "cause_code": 16, "local_transactions": 0},
        go={**_GO_ERROR, "response_code": 16, "cause_code": ABSENT},
    ),
)
_PUSHES = (
    Scenario("push_concurrent", {"received": 60, "distinct": 60}),
    Scenario("push_orderly", {"received": 60, "distinct": 60, "in_order": True}),
    Scenario("push_broadcast", {"received": [60, 60], "distinct": [60, 60]}),
    Scenario("push_tags", {"received": {"A": 10, "B": 10}}),
    Scenario(
        "push_sql92",
        {"error_class": "MQClientException", "response_code": 1},
        go={"error_class": ABSENT, "response_code": ABSENT, "received": 0},
    ),
    Scenario(
        "push_pop",
        {"received": 0},
        clients=(JAVA,),
        tidemark_only="a broker assigns queues (QUERY_ASSIGNMENT, 400), which Tidemark refuses",
    ),
    Scenario(
        "push_balance",
        {
            "alone": True,
            "shared": True,
            "rounds_while_shared": [[2, 2]] * 5,
            "taken_over": True,
            "rounds_after": [[4, 0]] * 5,
            "lost": 0,
        },
    ),
    # A broker gives a new group offset 0 while the queue has its first message: consumeFromWhere has no effect.
    Scenario("start_from_last", {"received": 20}),
    Scenario("start_from_timestamp", {"received": 20}),
    Scenario("start_again", {"first": _bodies(0, 12), "second": _bodies(12, 20)}),
)
_RETRIES = (
    Scenario(
        "retry_once",
        {
            "reconsume_times": {body: [0, 1] for body in _bodies(0, 3)},
            "topic_kept": True,
            "message_ids_kept": True,
            "origin_message_ids": True,
        },
    ),
    Scenario("retry_to_dead_letters", {"reconsume_times": {"m-00": [0, 1, 2]}, **_DEAD}),
    Scenario("orderly_suspend", {"deliveries": _SUSPENDED}),
    Scenario(
        "orderly_to_dead_letters",
        {"deliveries": _SUSPENDED, **_DEAD},
        # Go tries once more, and gives the message back (code 36), which counts from the stored record.
        go={"deliveries": [*_SUSPENDED[:3], "m-00 3", *_SUSPENDED[3:]], "dead_reconsume_times": [1]},
    ),
)
_PULLS = (
    Scenario(
        "lite_subscribe",
        {
            "first": _bodies(0, 20),
            "committed": {str(queue): 5 for queue in range(4)},
            "second": _bodies(20, 28),
        },
        go={"committed": ABSENT},
    ),
    Scenario(
        "lite_assign",
        {"offsets_after_seek": [3, 4] * 4},
        java={
            "queues": [0, 1, 2, 3],
            "all": _bodies(0, 20),
            "from_begin": 20,
            "from_end": _bodies(20, 28),
            "committed": {str(queue): 7 for queue in range(4)},
            "offset_for_time_0": 0,
            "offset_for_future": 7,
        },
    ),
    Scenario(
        "pull",
        {
            "queues": [0, 1, 2, 3],
            "all": _pull("FOUND", range(10), 10),
            "most_3": _pull("FOUND", range(4, 7), 7),
            "after_end": _pull("OFFSET_ILLEGAL", _NONE, 10),
            "held": True,
            "woken": _pull("FOUND", range(10, 11), 11, maximum=11),
            "queue_out_of_range": {"error_class": "MQBrokerException", "response_code": 29},
            "unknown_topic": {"error_class": "MQBrokerException", "response_code": 17},
        },
        java={
            "tag": _pull("FOUND", range(0, 10, 2), 10),
            "no_match": _pull("NO_MATCHED_MSG", _NONE, 10),
            "at_end": _pull("NO_NEW_MSG", _NONE, 10),
            "empty_queue": _pull("NO_NEW_MSG", _NONE, 0, maximum=0),
            "empty_queue_at_3": _pull("OFFSET_ILLEGAL", _NONE, 0, maximum=0),
        },
        go={
            "queue_out_of_range": {**_GO_ERROR, "response_code": 29},
            "unknown_topic": {**_GO_ERROR, "response_code": 17},
        },
    ),
    Scenario(
        "pull_offsets",
        {"before": 0, "stored": True, "stored_back": True, "of_another_group": 0},
        java={"min": 0, "max": 10},
    ),
    Scenario(
        "pull_search_offset",
        {
            "exact": list(range(10)),
            "between": list(range(1, 11)),
            "time_0": 0,
            "future": 10,
            "empty_queue": 0,
        },
        java={"first_time_is_earliest": True, "earliest_of_empty_queue": -1},
    ),
    Scenario(
        "query_message",
        {
            "even": _bodies(0, 6, 2),
            "shared": _bodies(0, 6),
            "most_2": 2,
            "none": {"error_class": "MQClientException", "response_code": 208},
            "old_times": {"error_class": "MQClientException", "response_code": 208},
            "by_unique_key": "m-05",
            "by_offset_id": "m-05",
        },
        clients=(JAVA,),
    ),
)
# The longest first, so that they run beside many short ones.
SCENARIOS = (*_RETRIES, *_PUSHES, *_PULLS, *_SENDS)
