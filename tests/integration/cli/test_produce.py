"""`tidemark produce` into a real stack."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.integration.cli.conftest import COMMAND, Tidemark
from tidemark.cli.terminal.exit_status import ExitStatus

pytestmark = [pytest.mark.integration, pytest.mark.slow]

_BODY, _CSV = ("--format", "jsonl", "--body-field", "b"), ("--format", "csv")
_DIGITS = "123456789012345678901234567890"


def test_lines_become_messages_in_order(tidemark: Tidemark) -> None:
    """All are in one queue, in the order of the file."""
    tidemark.json("topic", "create", "lines", "--queues", 1)
    lines = [f"line {number}" for number in range(5_000)]
    assert tidemark.produce("lines", given="\n".join(lines)) == 5_000
    assert [message["body"] for message in tidemark.messages("lines")] == lines


def test_fields_of_json_lines_are_key_and_tag(tidemark: Tidemark) -> None:
    """The key chooses the queue, and finds the message."""
    lines = [json.dumps({"id": f"k{number}", "kind": "ab"[number % 2], "n": number}) for number in range(100)]
    options = ("--format", "jsonl", "--key-field", "id", "--tag-field", "kind")
    assert tidemark.produce("json", *options, given="\n".join(lines) + "\n") == 100
    messages = tidemark.messages("json")
    assert sorted(message["body"] for message in messages) == sorted(lines)
    (found,) = tidemark.messages("json", "--key", "k7")
    assert (found["body"], found["tag"], found["keys"]) == (lines[7], "b", ["k7"])


def test_csv_and_parquet_files_are_recognised_by_extension(tidemark: Tidemark, tmp_path: Path) -> None:
    """A row is JSON, or one column is the body."""
    table = pa.table({"id": ["a", "b"], "n": [1, 2]})
    pq.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("id,n\na,1\nb,2\n")
    assert tidemark.produce("tables", "--file", tmp_path / "t.parquet", "--key-field", "id") == 2
    assert tidemark.produce("tables", "--file", tmp_path / "t.csv", "--body-field", "n", "--tag-field", "id") == 2
    bodies = {message["body"]: message["tag"] for message in tidemark.messages("tables")}
    assert bodies == {'{"id":"a","n":1}': None, '{"id":"b","n":2}': None, "1": "a", "2": "b"}


def test_parquet_is_read_from_a_pipe(tidemark: Tidemark, tmp_path: Path) -> None:
    """The input is read completely, because its index is at its end."""
    pq.write_table(pa.table({"n": [1, 2, 3]}), tmp_path / "t.parquet")
    assert tidemark.produce("pipe", "--format", "parquet", given=(tmp_path / "t.parquet").read_bytes()) == 3


def test_a_line_from_a_pipe_is_sent_immediately(tidemark: Tidemark) -> None:
    """It can be consumed before the next line is written."""
    tidemark.json("topic", "create", "trickle", "--queues", 1)
    with (
        tidemark.start("produce", "trickle") as producer,
        tidemark.start("consume", "trickle", "--follow", "--output", "raw", "--max", 2) as consumer,
    ):
        assert producer.stdin is not None
        assert consumer.stdout is not None
        for line in (b"one\n", b"two\n"):
            producer.stdin.write(line)
            producer.stdin.flush()
            assert consumer.stdout.readline() == line
        producer.stdin.close()
        assert producer.wait(30) == consumer.wait(30) == ExitStatus.OK


def test_a_malformed_line_is_reported_and_later_lines_are_not_sent(tidemark: Tidemark) -> None:
    """The lines before it are acknowledged, and their number is reported."""
    tidemark.json("topic", "create", "malformed", "--queues", 1)
    given = '{"n": 1}\n{"n": 2}\nnonsense\n{"n": 4}\n'
    done = tidemark.run("produce", "malformed", "--format", "jsonl", "--output", "json", given=given)
    told, problem = json.loads(done.stdout), json.loads(done.stderr)
    assert done.returncode == ExitStatus.REJECTED
    assert (told["acknowledged"], told["complete"]) == (2, False)
    assert (problem["facts"], problem["reason"]) == ({"line": 3}, "ARGUMENT_ILLEGAL")
    assert problem["next_steps"] == ["2 messages are acknowledged"]
    tidemark.wait_for(told["end_physical_offset"])
    assert len(tidemark.messages("malformed")) == 2


@pytest.mark.parametrize(("signalled", "status"), [(False, ExitStatus.REJECTED), (True, ExitStatus.INTERRUPTED)])
def test_csv_of_a_pipe_ends_at_a_malformed_row_or_ctrl_c(
    tidemark: Tidemark, signalled: bool, status: ExitStatus
) -> None:
    """It does not wait for the end of the pipe, which stays open."""
    tidemark.json("topic", "create", "csv-pipe", "--queues", 1)
    with tidemark.start("produce", "csv-pipe", "--format", "csv") as producer:
        assert producer.stdin is not None
        assert producer.stderr is not None
        producer.stdin.write(b"k,v\n" + (b"" if signalled else b"1\n" * (4 << 20)))  # a block)
        producer.stdin.flush()
        if signalled:
            time.sleep(3)  # until it reads
            producer.send_signal(signal.SIGINT)
        assert producer.wait(30) == status
        assert b"0 messages are acknowledged" in producer.stderr.read()


def test_a_row_that_the_writer_refuses_is_reported(tidemark: Tidemark, tmp_path: Path) -> None:
    """The key has a space, in the fourth row of the file."""
    (tmp_path / "t.csv").write_text("id,n\na,1\nb,2\nc d,3\n")
    done = tidemark.run("produce", "rows", "--file", tmp_path / "t.csv", "--key-field", "id")
    assert done.returncode == ExitStatus.REJECTED
    assert done.stderr.startswith(b"error: row 4: ")
    assert b"0 messages are acknowledged" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["orders", "--key-field", "id"], ExitStatus.USAGE, b"lines have no fields"),
        (["orders", "--file", "/no/such/file"], ExitStatus.USAGE, b"does not exist"),
        (["no.such.name"], ExitStatus.REJECTED, b"error: "),
        (["orders", "--format", "csv", "--key-field", "id"], ExitStatus.REJECTED, b"the header is missing"),
    ],
)
def test_usage_errors_and_invalid_names_are_reported(
    tidemark: Tidemark, arguments: list[str], status: ExitStatus, told: bytes
) -> None:
    """The error comes before a send, without a traceback."""
    done = tidemark.run("produce", *arguments)
    assert (done.returncode, told in done.stderr, b"Traceback" in done.stderr) == (status, True, False)


def test_ctrl_c_reports_the_acknowledged_messages(tidemark: Tidemark) -> None:
    """The log has exactly that number."""
    tidemark.json("topic", "create", "interrupted", "--queues", 1)
    with tidemark.start("produce", "interrupted") as producer:
        assert producer.stdin is not None
        assert producer.stderr is not None
        producer.stdin.write(b"one\ntwo\n")
        producer.stdin.flush()
        deadline = time.monotonic() + 30
        while len(tidemark.messages("interrupted")) < 2:
            assert time.monotonic() < deadline
        producer.send_signal(signal.SIGINT)
        assert producer.wait(30) == ExitStatus.INTERRUPTED
        assert producer.stderr.read() == b"interrupted\n2 messages are acknowledged\n"
    assert len(tidemark.messages("interrupted")) == 2


def test_produce_without_a_writer_names_a_remedy(nowhere: Tidemark) -> None:
    """The error comes before a line is read."""
    done = nowhere.run("produce", "orders", given="x\n")
    assert done.returncode == ExitStatus.UNAVAILABLE
    assert b"tidemark serve" in done.stderr


@pytest.mark.parametrize(
    ("name", "given", "options", "bodies"),
    [
        ("crlf", b"one\r\ntwo\r\n", (), ["one", "two"]),
        ("mark", b"\xef\xbb\xbfone\r\n", (), ["one"]),
        ("exact", b"\xef\xbb\xbfone\r\n", ("--exact",), ["\ufeffone\r"]),
        ("cr", b"one\rtwo\r\r\n", (), ["one\rtwo\r"]),
        ("nul", b"a\x00b\n", (), ["a\x00b"]),
        ("mac", b"one\rtwo\r", (), ["one\rtwo\r"]),
        ("digits", f'{{"b":{_DIGITS}}}\r\n{{"b":{{"x":1.0,"x":2}}}}\r\n'.encode(), _BODY, [_DIGITS, '{"x":1.0,"x":2}']),
        ("csv", b'\xef\xbb\xbfk,v\r\n007,"a\r\nb"\r\n', _CSV, ['{"k":"007","v":"a\\r\\nb"}']),
        ("na", b"k,v\nNA,null\n", _CSV, ['{"k":"NA","v":"null"}']),
        ("header", b"k,v\r\n", _CSV, []),
        ("no-rows", b"k,v\n\n\n", _CSV, []),
    ],
)
def test_produced_values_are_consumed_unchanged(
    tidemark: Tidemark, name: str, given: bytes, options: tuple[str, ...], bodies: list[str]
) -> None:
    tidemark.json("topic", "create", f"input-{name}", "--queues", 1)
    assert tidemark.produce(f"input-{name}", *options, given=given) == len(bodies)
    assert [message["body"] for message in tidemark.messages(f"input-{name}")] == bodies


@pytest.mark.parametrize(
    ("name", "given", "options", "acknowledged", "message"),
    [
        ("blank", b"one\r\n\r\ntwo\r\n", (), 1, "line 2: it is empty"),
        ("utf16", "one\ntwo\n".encode("utf-16"), (), 0, "line 1: it begins with the byte order mark of UTF-16"),
        ("twice", b'{"b":1}\n{"b":1,"b":2}\n', _BODY, 1, "line 2: it has the field 'b' twice"),
        ("latin", "k,v\n1,a\n2,grün\n".encode("latin-1"), _CSV, 0, "row 3"),
        ("short", b"k,v\n1,2\n3\n", _CSV, 0, "row 3: Expected 2 columns, got 1"),
        ("empty", b"v\na\n\nb\n", (*_CSV, "--body-field", "v"), 0, "row 3"),
    ],
)
def test_invalid_values_are_refused_with_their_line(
    tidemark: Tidemark, name: str, given: bytes, options: tuple[str, ...], acknowledged: int, message: str
) -> None:
    """The number of acknowledged messages is reported, too."""
    tidemark.json("topic", "create", f"refused-{name}", "--queues", 1)
    done = tidemark.run("produce", f"refused-{name}", *options, given=given)
    assert done.returncode == ExitStatus.REJECTED
    assert message in done.stderr.decode()
    assert f"{acknowledged} message{' is' if acknowledged == 1 else 's are'} acknowledged" in done.stderr.decode()


def test_a_body_is_sent_with_key_tag_and_properties(tidemark: Tidemark) -> None:
    """The output is its place, as JSON or a table."""
    tidemark.json("topic", "create", "single", "--queues", 3)
    body = os.fsdecode(b"caf\xc3\xa9 \xff")
    options = ("--key", "k1", "--tag", "red", "--property", "region=eu", "--property", "note=a=b")
    sent = tidemark.json("produce", "single", body, *options)
    tidemark.wait_for(sent["end_physical_offset"])
    (message,) = tidemark.messages("single")
    places = ("queue_id", "queue_offset", "physical_offset", "message_id", "offset_msg_id", "store_timestamp_ms")
    assert {name: sent[name] for name in places} == {name: message[name] for name in places}
    assert (message["keys"], message["tag"]) == (["k1"], "red")
    assert message["properties"] == {"region": "eu", "note": "a=b"}
    assert (message["body"], message["body_encoding"]) == ("Y2Fmw6kg/w==", "base64")
    shown = tidemark.run("produce", "single", "again", "--key", "k1")
    facts = dict(line.split()[-2:] for line in shown.stdout.decode().splitlines() if "queue" in line)
    assert facts == {"queue": str(message["queue_id"]), "offset": "1"}


@pytest.mark.parametrize("given", [None, "one\ntwo\n"])
def test_delayed_messages_have_no_place_yet(tidemark: Tidemark, given: str | None) -> None:
    """They arrive later, with their delay level."""
    topic = "delayed-body" if given is None else "delayed-lines"
    tidemark.json("topic", "create", topic, "--queues", 1)
    sent = tidemark.json(
        "produce", topic, *([] if given else ["one"]), "--delay-level", 1, "--property", "a=b", given=given or ""
    )
    assert sent.get("queue_id") is None
    assert not sent.get("queues")
    with tidemark.start("consume", topic, "--follow", "--output", "json", "--max", sent["acknowledged"]) as reader:
        assert reader.stdout is not None
        messages = [json.loads(line) for line in reader.stdout]
    assert sorted(message["body"] for message in messages) == ["one", "two"][: sent["acknowledged"]]
    assert {message["properties"]["DELAY"] for message in messages} == {"1"}
    assert {message["properties"]["a"] for message in messages} == {"b"}


def test_keys_of_lines_end_at_the_separator(tidemark: Tidemark) -> None:
    """Only the first separator counts; an empty key is none; the tag is that of all lines."""
    tidemark.json("topic", "create", "keyed", "--queues", 1)
    given = "k1\tone\tmore\n\ttwo\r\nk3\tthree"
    assert tidemark.produce("keyed", "-K", r"\t", "--tag", "t", given=given) == 3
    messages = tidemark.messages("keyed")
    assert [(message["keys"], message["body"]) for message in messages] == [
        (["k1"], "one\tmore"),
        ([], "two"),
        (["k3"], "three"),
    ]
    assert {message["tag"] for message in messages} == {"t"}


def test_fields_of_json_lines_take_precedence_over_the_options(tidemark: Tidemark) -> None:
    """The option is for lines without a value of their own."""
    tidemark.json("topic", "create", "own-key", "--queues", 1)
    given = '{"id": "own"}\n{"id": null}\n'
    assert tidemark.produce("own-key", "--format", "jsonl", "--key-field", "id", "--tag", "t", given=given) == 2
    assert [(one["keys"], one["tag"]) for one in tidemark.messages("own-key")] == [(["own"], "t"), ([], "t")]


def test_the_places_of_lines_are_printed(tidemark: Tidemark) -> None:
    """They are ranges of offsets by queue."""
    tidemark.json("topic", "create", "places", "--queues", 1)
    first = tidemark.run("produce", "places", given="a\nb\n")
    assert first.stderr == b"places: 2 messages are acknowledged, queue 0 offsets 0 to 1\n"
    assert (
        tidemark.run("produce", "places", given="c").stderr == b"places: 1 message is acknowledged, queue 0 offset 2\n"
    )
    last = tidemark.json("produce", "places", given="d\ne\n")
    assert last["queues"] == [{"queue_id": 0, "first_offset": 3, "last_offset": 4, "messages": 2}]


def test_lines_typed_at_a_terminal_have_a_prompt(tidemark: Tidemark) -> None:
    """An empty line is ignored with a note; Ctrl-D ends."""
    tidemark.json("topic", "create", "typed", "--queues", 1)
    master, slave = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "produce", "typed"], env=tidemark.environment, stdin=slave, stderr=subprocess.PIPE
    ) as producer:
        os.close(slave)
        assert producer.stderr is not None
        assert producer.stderr.readline() == b"one message per line; Ctrl-D ends\n"
        os.write(master, b"one\n\ntwo\n\x04")
        assert producer.wait(30) == ExitStatus.OK
        assert producer.stderr.read().splitlines() == [
            b"an empty line is no message; Ctrl-D ends",
            b"typed: 2 messages are acknowledged, queue 0 offsets 0 to 1",
        ]
    os.close(master)


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["x", "--format", "csv"], b"leave out --file"),
        (["x", "--batch-size", "3"], b"leave out --file"),
        (["x", "--property", "novalue"], b"not NAME=VALUE"),
        (["x", "--property", "a=1", "--property", "a=2"], b"a is given twice"),
        (["x", "--delay-level", "19"], b"--delay-level"),
        (["-K", ""], b"it is empty"),
        (["-K", r"\q"], b"no escape"),
        (["-K", ":", "--format", "jsonl"], b"applies only to lines"),
        (["-K", ":", "--key", "k"], b"--key-separator"),
        (["--format", "csv", "--tag", "t"], b"do not apply to csv"),
        (["--format", "jsonl", "--tag", "t", "--tag-field", "t"], b"--tag-field"),
        (["--delay-level", "3", "--batch-size", "3"], b"one by one"),
    ],
)
def test_options_of_produce_that_do_not_fit_are_usage_errors(
    nowhere: Tidemark, arguments: list[str], reported: bytes
) -> None:
    """No service is asked."""
    done = nowhere.run("produce", "orders", *arguments)
    assert (done.returncode, reported in done.stderr, done.stdout) == (ExitStatus.USAGE, True, b""), done


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ("k:a\nno separator\n", b"line 2: it has no separator ':'"),
        ("k:a\nk:\n", b"line 2: it has no body after its key"),
        (b"k:a\n\xff:b\n", b"line 2: its key is not UTF-8"),
        ("k:a\nk k:b\n", b"line 2: "),
    ],
)
def test_malformed_keyed_lines_are_reported(tidemark: Tidemark, given: str | bytes, reported: bytes) -> None:
    """The exit status is that of refused input."""
    done = tidemark.run("produce", "malformed-keys", "-K", ":", given=given)
    assert (done.returncode, reported in done.stderr) == (ExitStatus.REJECTED, True), done


@pytest.mark.parametrize(
    "locale", ["C", *(pytest.param(one, marks=pytest.mark.exhaustive) for one in ("POSIX", "en_US.ISO-8859-1"))]
)
def test_input_and_output_do_not_depend_on_the_locale(tidemark: Tidemark, locale: str) -> None:
    """Bodies are bytes; characters that a terminal cannot show are escaped in the table."""
    topic = f"locale-{locale[:2]}"
    kept = {name: value for name, value in tidemark.environment.items() if not name.startswith(("LC_", "LANG"))}
    poor = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    there = Tidemark("", tidemark.query_url, environment={**kept, **poor})
    assert there.produce(topic, given="grün 订单\n".encode()) == 1
    assert there.run("consume", topic, "--output", "raw").stdout == "grün 订单\n".encode()
    assert [message["body"] for message in there.messages(topic)] == ["grün 订单"]
    table = there.run("consume", topic)
    assert table.returncode == 0
    assert b"\\u8ba2" in table.stdout
