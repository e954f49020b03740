"""Hooks of a program that run for every send."""

from __future__ import annotations

import pytest

from tests.unit.client.fake_writer import FakeWriter, Result, refusal
from tidemark.client import Hooks, Message, Producer, SendResult
from tidemark.errors import TopicForbiddenError


@pytest.mark.parametrize("accumulate", [False, True])
def test_hooks_see_each_message_and_its_outcome(writer: FakeWriter, accumulate: bool) -> None:
    """They run before and after, in the order of sends."""
    seen: list[tuple[str, object]] = []
    hooks = Hooks(
        before_send=lambda message: seen.append(("before", message.body)),
        after_send=lambda message, outcome: seen.append((str(message.body), outcome)),
    )
    with Producer(writer.address, hooks=hooks, accumulate=accumulate) as producer:
        sent = producer.send("t", "one")
        producer.flush()
        batch = producer.send_batch([Message("t", "two"), Message("t", "three")])
        producer.flush()
        writer.on_entry = lambda entry: Result(correlation_id=entry.correlation_id, error=refusal("TOPIC_FORBIDDEN"))
        with pytest.raises(TopicForbiddenError):
            producer.send("t", "four")
    *told, (name, error) = seen
    assert told == [
        ("before", "one"),
        ("one", sent),
        ("before", "two"),
        ("before", "three"),
        ("two", batch),
        ("three", batch),
        ("before", "four"),
    ]
    assert name == "four"
    assert isinstance(error, TopicForbiddenError)


def test_an_exception_in_the_forbid_hook_aborts_the_send(writer: FakeWriter) -> None:
    """The send raises the hook's exception; nothing is sent, and no other hook runs."""
    seen: list[Message] = []

    def forbid(message: Message) -> None:
        if message.tag == "secret":
            raise PermissionError("not this one")

    with Producer(writer.address, hooks=Hooks(forbid=forbid, before_send=seen.append)) as producer:
        for send in (
            lambda: producer.send("t", b"x", tag="secret"),
            lambda: producer.send_batch([Message("t", b"x"), Message("t", b"x", tag="secret")]),
            lambda: producer.send_oneway("t", b"x", tag="secret"),
        ):
            with pytest.raises(PermissionError):
                send()
        assert seen == []
        assert writer.received == []
        assert producer.send("t", b"x").count == 1


def test_an_exception_in_a_hook_does_not_fail_the_send(writer: FakeWriter) -> None:
    """The exception is reported as a warning."""

    def fail(message: Message, outcome: SendResult | BaseException | None = None) -> None:
        raise LookupError("the hook's own")

    with Producer(writer.address, hooks=Hooks(before_send=fail)) as producer:
        with pytest.warns(RuntimeWarning, match="LookupError"):
            sent = producer.send("t", b"x")
        assert sent.count == 1
