"""The small client verbs against a real stack: topic, get, offset, group, status, watermark, doctor."""

from __future__ import annotations

import json
import signal

import pytest

from tests.integration.cli.conftest import Tidemark
from tests.integration.query.remoting.calls import heartbeat
from tests.remoting_client import RemotingClient
from tidemark.cli.terminal.exit_status import ExitStatus
from tidemark.client import Consumer
from tidemark.local.local_stack import LocalStack

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def test_a_topic_is_created_shown_and_deleted(tidemark: Tidemark) -> None:
    """The output is JSON or a table."""
    made = tidemark.json("topic", "create", "shown", "--queues", 2, "--attribute", "queue.type=BatchCQ")
    assert (made["write_queues"], made["attributes"]) == (2, {"queue.type": "BatchCQ"})
    assert "shown" in [topic["topic"] for topic in tidemark.json("topic", "list")["topics"]]
    assert [queue["max_offset"] for queue in tidemark.json("topic", "show", "shown")["queues"]] == [0, 0]
    shown = tidemark.run("topic", "show", "shown").stdout.decode()
    assert "BatchCQ: each batch is stored as one record" in shown
    assert "read-write" in shown
    assert tidemark.json("topic", "delete", "shown", "--yes") == {"topic": "shown", "deleted": True}
    assert tidemark.run("topic", "delete", "shown", "--yes").returncode == ExitStatus.NOT_FOUND


def test_creating_a_topic_reports_whether_it_existed(tidemark: Tidemark) -> None:
    """It succeeds in both cases; another shape is refused."""
    create = ("topic", "create", "twice", "--queues", 2)
    assert b"twice: created" in tidemark.run(*create).stdout
    assert b"twice: exists, unchanged" in tidemark.run(*create).stdout
    assert tidemark.json(*create)["created"] is False
    assert tidemark.run(*create[:-1], 3).returncode == ExitStatus.REJECTED


def test_a_topic_is_altered(tidemark: Tidemark) -> None:
    """Queues, permission and attributes change; others stay."""
    tidemark.json("topic", "create", "altered", "--queues", 2)
    alter = ("topic", "alter", "altered")
    changed = tidemark.json(*alter, "--queues", 4, "--attribute", "+message.type=NORMAL")
    assert (changed["read_queues"], changed["write_queues"], changed["permission"]) == (4, 4, 6)
    assert changed["attributes"]["message.type"] == "NORMAL"
    fewer = tidemark.json(*alter, "--queues", 1, "--read-queues", 4, "--permission", "read")
    assert (fewer["read_queues"], fewer["write_queues"], fewer["permission"]) == (4, 1, 4)
    assert "message.type" not in tidemark.json(*alter, "--attribute", "-message.type")["attributes"]
    assert b"read-write" in tidemark.run(*alter, "--permission", "read-write").stdout
    tidemark.json(*alter, "--permission", "write")
    assert tidemark.run("topic", "show", "altered").stdout.splitlines()[3].split() == [b"permission", b"write"]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["no-such-topic", "--queues", "2"], ExitStatus.NOT_FOUND),
        (["x"], ExitStatus.USAGE),
        (["x", "--attribute", "message.type=FIFO"], ExitStatus.USAGE),
        (["x", "--attribute", "-"], ExitStatus.USAGE),
        (["x", "--permission", "none"], ExitStatus.USAGE),
    ],
)
def test_an_invalid_alteration_is_reported(tidemark: Tidemark, arguments: list[str], status: ExitStatus) -> None:
    """Standard output stays empty."""
    done = tidemark.run("topic", "alter", *arguments)
    assert (done.returncode, done.stdout) == (status, b""), done


def test_a_topic_is_not_deleted_without_confirmation(tidemark: Tidemark) -> None:
    """An empty input counts as no."""
    tidemark.json("topic", "create", "kept")
    for answer in ("n\n", ""):
        done = tidemark.run("topic", "delete", "kept", given=answer)
        assert done.returncode == ExitStatus.FAILED
        assert b"nothing was changed" in done.stderr
    assert tidemark.run("topic", "show", "kept").returncode == ExitStatus.OK
    assert tidemark.run("topic", "delete", "kept", given="y\n").returncode == ExitStatus.OK


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["create", "no.dots"], ExitStatus.REJECTED),
        (["create", "x", "--attribute", "nonsense"], ExitStatus.USAGE),
        (["create", "x", "--attribute", "no.such=thing"], ExitStatus.REJECTED),
        (["show", "no-such-topic"], ExitStatus.NOT_FOUND),
    ],
)
def test_invalid_topics_are_reported(tidemark: Tidemark, arguments: list[str], status: ExitStatus) -> None:
    """The error is one line of JSON on standard error, or click's usage."""
    done = tidemark.run("topic", *arguments, "--output", "json")
    assert (done.returncode, done.stdout) == (status, b""), done
    assert status is ExitStatus.USAGE or json.loads(done.stderr)["reason"]


def test_get_finds_a_message_by_id_offset_and_key(tidemark: Tidemark) -> None:
    """All three return the same one."""
    assert tidemark.produce("got", "--format", "jsonl", "--key-field", "id", given='{"id": "a1"}') == 1
    (message,) = tidemark.json("get", "key", "got", "a1")["messages"]
    (by_id,) = tidemark.json("get", "message", message["offset_msg_id"])["messages"]
    (by_place,) = tidemark.json("get", "at", message["physical_offset"])["messages"]
    (by_unique_key,) = tidemark.json("get", "key", "got", message["message_id"], "--unique")["messages"]
    assert message == by_unique_key == {**by_id, "queue_id": message["queue_id"]}
    assert by_place == by_id
    shown = tidemark.run("get", "at", message["physical_offset"]).stdout.decode()
    assert '{"id": "a1"}' in shown


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["message", "nonsense"], ExitStatus.REJECTED),
        (["message", "7F00000100001F91000000FFFFFFFFFF"], ExitStatus.NOT_FOUND),
        (["at", "1"], ExitStatus.NOT_FOUND),
        (["key", "got", "no-such-key"], ExitStatus.NOT_FOUND),
        (["key", "no-such-topic", "x"], ExitStatus.NOT_FOUND),
        (["at", "-1"], ExitStatus.USAGE),
    ],
)
def test_a_missing_message_is_reported(tidemark: Tidemark, arguments: list[str], status: ExitStatus) -> None:
    """Standard output stays empty."""
    done = tidemark.run("get", *arguments)
    assert (done.returncode, done.stdout) == (status, b""), done


@pytest.mark.parametrize(
    ("arguments", "status", "reported"),
    [
        (["message", "zzz"], ExitStatus.REJECTED, "'zzz' is not an offset message id"),
        (["message", "7F0000012588571C4F31893E904D0000"], ExitStatus.NOT_FOUND, "is after the end of the log"),
    ],
)
def test_an_id_that_is_not_found_names_the_other_verb(
    tidemark: Tidemark, arguments: list[str], status: ExitStatus, reported: str
) -> None:
    """It may be an id from the client; no error names a path of the REST API."""
    done = tidemark.run("get", *arguments)
    assert (done.returncode, reported in done.stderr.decode()) == (status, True), done
    assert b"tidemark get key TOPIC ID --unique" in done.stderr
    assert b"/v1/" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["topic", "show", "a.b"],
        ["consume", "a.b"],
        ["get", "key", "a.b", "k"],
        ["group", "show", "a.b"],
        ["group", "reset", "a.b", "--topic", "got", "--to", "latest"],
        ["consume", "got", "--group", "a.b"],
    ],
)
def test_names_that_no_topic_or_group_has_are_refused(tidemark: Tidemark, arguments: list[str]) -> None:
    """The error names the value, and no library."""
    done = tidemark.run(*arguments)
    assert (done.returncode, done.stdout) == (ExitStatus.REJECTED, b""), done
    assert b"'a.b' is not a " in done.stderr
    assert b"Value error" not in done.stderr


def test_topic_show_at_a_time_has_the_offset_of_each_queue(tidemark: Tidemark) -> None:
    """A message's own store time leads to its offset; a later time leads to the end."""
    tidemark.json("topic", "create", "timed", "--queues", 1)
    tidemark.produce("timed", given="a\n")
    tidemark.produce("timed", given="b\n")
    second = tidemark.messages("timed")[1]
    stored_ms = second["store_timestamp_ms"]
    shown = tidemark.json("topic", "show", "timed", "--at", f"{stored_ms}ms")
    assert shown["at_time_ms"] == stored_ms
    assert shown["queues"][0]["at_time"] == {"offset": 1, "store_timestamp_ms": stored_ms}
    later = "2999-01-01T00:00:00+02:00"
    (queue,) = tidemark.json("topic", "show", "timed", "--at", later)["queues"]
    assert queue["at_time"] == {"offset": 2, "store_timestamp_ms": None}
    assert tidemark.json("topic", "show", "timed", "--at", "-1h")["queues"][0]["at_time"]["offset"] == 0
    assert tidemark.json("topic", "show", "timed", "--at=now")["queues"][0]["at_time"]["offset"] == 2
    table = tidemark.run("topic", "show", "timed", "--at", later).stdout.decode()
    assert "at the time" in table and "no message yet" in table
    assert tidemark.run("topic", "show", "timed", "--at", "noon").returncode == ExitStatus.USAGE


def test_a_group_is_reset_shown_and_lags(tidemark: Tidemark) -> None:
    """A dry run sets nothing."""
    tidemark.json("topic", "create", "grouped", "--queues", 2)
    assert tidemark.produce("grouped", given="a\nb\nc\nd\n") == 4
    reset = ("group", "reset", "readers", "--topic", "grouped")
    planned = tidemark.json(*reset, "--to", "earliest", "--dry-run")
    assert [move["before"] for move in planned["offsets"]] == [None, None]
    assert tidemark.run("group", "show", "readers").returncode == ExitStatus.NOT_FOUND
    assert tidemark.json(*reset, "--to", "earliest", "--yes")["dry_run"] is False
    assert tidemark.json("group", "lag", "readers") == {
        "group": "readers",
        "lag": 4,
        "below_min": 0,
        "topics": {"grouped": 4},
    }
    assert tidemark.run("group", "lag", "readers", "--max", 3).returncode == ExitStatus.FAILED
    fullest = max(tidemark.json("group", "show", "readers")["queues"], key=lambda queue: queue["lag"])["queue_id"]
    tidemark.json(*reset, "--queue", fullest, "--to", 1, "--yes")
    queues = tidemark.json("group", "show", "readers")["queues"]
    assert {queue["queue_id"]: queue["offset"] for queue in queues} == {fullest: 1, 1 - fullest: 0}
    planned = tidemark.json(*reset, "--to", "-1h", "--dry-run")
    assert [move["offset"] for move in planned["offsets"]] == [0, 0]
    tidemark.json(*reset, "--to", "2999-01-01T00:00:00Z", "--yes")
    assert tidemark.json("group", "lag", "readers")["lag"] == 0
    assert "readers" in [group["group"] for group in tidemark.json("group", "list")["groups"]]


@pytest.mark.parametrize(
    ("arguments", "given", "status"),
    [
        (["--to", "1"], "", ExitStatus.USAGE),
        (["--queue", "0", "--to", "1000", "--yes"], "", ExitStatus.NOT_FOUND),
        (["--to", "latest"], "n\n", ExitStatus.FAILED),
    ],
)
def test_an_invalid_or_declined_reset_sets_nothing(
    tidemark: Tidemark, arguments: list[str], given: str, status: ExitStatus
) -> None:
    """The offset has no queue, is not in the queue, or the user answers no."""
    tidemark.json("topic", "create", "unmoved", "--queues", 2)
    done = tidemark.run("group", "reset", "nobody", "--topic", "unmoved", *arguments, given=given)
    assert done.returncode == status, done
    assert tidemark.run("group", "show", "nobody").returncode == ExitStatus.NOT_FOUND


def test_a_group_with_members_is_shown_and_cannot_be_reset(tidemark: Tidemark) -> None:
    """All of its offsets stay; after the consumer has left they are set."""
    tidemark.json("topic", "create", "shared", "--queues", 2)
    reset = ("group", "reset", "members", "--topic", "shared", "--to", "earliest", "--yes")
    with Consumer("shared", group="members", url=tidemark.query_url) as consumer:
        consumer.poll(0)
        (member,) = tidemark.json("group", "show", "members")["members"]
        assert b"shared 0 1" in tidemark.run("group", "show", "members").stdout
        refused = tidemark.run(*reset)
    assert len(member["holds"]) == 2
    assert (refused.returncode, b"stop its consumers" in refused.stderr) == (ExitStatus.REJECTED, True)
    assert len(tidemark.json(*reset)["offsets"]) == 2


def test_rocketmqs_clients_of_a_group_are_shown(tidemark: Tidemark, stack: LocalStack) -> None:
    """They have no queues here, because they divide the queues among themselves."""
    tidemark.json("topic", "create", "pushed", "--queues", 1)
    with RemotingClient(int(stack.query_remoting_address.rpartition(":")[2])) as client:
        assert heartbeat(client, "192.0.2.1@push", "pushing", pushed="*").code == 0
        shown = tidemark.json("group", "show", "pushing")
        table = tidemark.run("group", "show", "pushing").stdout
        groups = {one["group"]: one["members"] for one in tidemark.json("group", "list")["groups"]}
    assert [one["client_id"] for one in shown["clients"]] == ["192.0.2.1@push"]
    assert b"192.0.2.1@push" in table
    assert groups["pushing"] == 1


def test_status_exits_with_0_while_all_services_answer(tidemark: Tidemark, nowhere: Tidemark) -> None:
    """It is 1 if one service does not answer, 5 if none does."""
    seen = tidemark.json("status")
    assert [seen[name]["answers"] for name in ("query", "writer", "pipeline")] == [True, True, True]
    assert (seen["healthy"], seen["problems"], seen["writer"]["flush_mode"]) == (True, [], "sync")
    assert seen["writer"]["free_disk_bytes"] > seen["writer"]["min_free_disk_bytes"] > 0
    assert seen["store"]["writer"]["flush_mode"] == "sync"
    shown = tidemark.run("status").stdout
    assert b"healthy" in shown and b"takes writes" in shown and b"watermark" in shown
    one = tidemark.json("status", "--writer", nowhere.environment["TIDEMARK_WRITER_ADDRESS"], status=1)
    assert (one["writer"]["answers"], one["query"]["answers"], one["healthy"]) == (False, True, False)
    nobody = nowhere.json("status", status=5)
    assert (nobody["store"], nobody["pipeline"]["answers"]) == (None, False)


def test_status_follows_the_watermark_until_ctrl_c(tidemark: Tidemark) -> None:
    with tidemark.start("status", "--follow", "--output", "json") as follower:
        assert follower.stdout is not None
        assert follower.stderr is not None
        lines = [json.loads(follower.stdout.readline()) for _ in range(3)]
        follower.send_signal(signal.SIGINT)
        assert follower.wait(30) == ExitStatus.INTERRUPTED
        assert follower.stderr.read() == b"interrupted\n"
    assert all(line["store"]["lag_bytes"] >= 0 for line in lines)


def test_doctor_recognises_the_services_of_a_running_stack(tidemark: Tidemark) -> None:
    """Both answer, and their clock agrees."""
    done = tidemark.run("doctor", "--output", "json")
    texts = {check["name"]: (check["level"], check["text"]) for check in json.loads(done.stdout)["checks"]}
    assert texts["writer"][0] == texts["query"][0] == texts["clock"][0] == "ok"
    assert "answers" in texts["writer"][1]
    assert "within two seconds" in texts["clock"][1]
