"""Rules, and the decisions that follow from them."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from tidemark.access.identity import Identity
from tidemark.access.right import Action, Right, on_group, on_store, on_topic
from tidemark.access.rule import Pattern, Policy, Rule

ALICE = Identity("alice", frozenset({"readers"}))
HERE = "10.1.2.3"


def rule(*resources: str, **given: Any) -> Rule:
    """Return a rule that lets alice publish from every address, unless *given* changes it."""
    return Rule(
        given.get("principals", frozenset({"alice"})),
        given.get("roles", frozenset()),
        tuple(map(Pattern.parse, resources)),
        frozenset(given.get("actions", {Action.PUB})),
        tuple(map(ipaddress.ip_network, given.get("networks", ()))),
        given.get("denies", False),
    )


def may(policy: Policy, right: Right, identity: Identity = ALICE, address: str = HERE) -> bool:
    """Decide twice, because decisions are cached."""
    first = policy.allows(identity, right, address)
    assert policy.allows(identity, right, address) is first
    return first


PUB_T = on_topic("t", Action.PUB)


def test_an_action_without_an_allowing_rule_is_denied() -> None:
    """Rules for other principals do not count."""
    assert not may(Policy([]), PUB_T)
    assert not may(Policy([rule("Topic:t", principals=frozenset({"bob"}))]), PUB_T)


@pytest.mark.parametrize(
    ("pattern", "right", "matches"),
    [
        ("Topic:t", on_topic("t", Action.PUB), True),
        ("Topic:t", on_topic("tt", Action.PUB), False),
        ("Topic:t*", on_topic("tt", Action.PUB), True),
        ("Topic:t*", on_topic("t", Action.PUB), True),
        ("Topic:*", on_topic("x", Action.PUB), True),
        ("Topic:*", on_group("x", Action.PUB), False),
        ("*", on_group("x", Action.PUB), True),
        ("Cluster:s", on_store("s", Action.PUB), True),
        ("Group:g", on_topic("g", Action.PUB), False),
    ],
)
def test_a_pattern_matches_a_name_or_a_prefix(pattern: str, right: Right, matches: bool) -> None:
    """A pattern is for one kind of resource, or for any kind."""
    assert may(Policy([rule(pattern)]), right) is matches


@pytest.mark.parametrize("order", [1, -1])
def test_a_deny_rule_overrides_allow_rules(order: int) -> None:
    """The order of the rules and the specificity of their patterns do not matter."""
    rules = [rule("Topic:t"), rule("Topic:*", denies=True)][::order]
    assert not may(Policy(rules), PUB_T)


def test_a_deny_rule_for_one_action_keeps_the_others() -> None:
    """One of a right's actions is enough."""
    policy = Policy([rule("*", actions=set(Action)), rule("*", denies=True, actions={Action.SUB})])
    assert may(policy, on_topic("t", Action.SUB, Action.GET))
    assert not may(policy, on_topic("t", Action.SUB))


def test_a_rule_for_a_role_applies_to_its_principals() -> None:
    """The rule holds for every principal that has one of the roles."""
    policy = Policy([rule("*", principals=frozenset(), roles=frozenset({"readers"}))])
    assert may(policy, PUB_T)
    assert not may(policy, PUB_T, Identity("bob", frozenset({"writers"})))


def test_an_asterisk_matches_every_known_principal() -> None:
    """An asterisk stands for every known principal."""
    assert may(Policy([rule("*", principals=frozenset({"*"}))]), PUB_T, Identity("bob", frozenset()))


@pytest.mark.parametrize(
    ("address", "allowed"),
    [("10.9.9.9", True), ("::ffff:10.9.9.9", True), ("11.0.0.1", False), ("fe80::1%eth0", False), ("nowhere", False)],
)
def test_a_rule_may_be_limited_to_a_network(address: str, allowed: bool) -> None:
    """An IPv4 address that is mapped into IPv6 is the same address."""
    assert may(Policy([rule("*", networks=["10.0.0.0/8"])]), PUB_T, address=address) is allowed


@pytest.mark.parametrize("prefix", ["%RETRY%", "%DLQ%"])
def test_retry_and_dead_letter_topics_belong_to_their_group(prefix: str) -> None:
    """A consumer sends back a message that it could not process, without a right to publish to any topic."""
    policy = Policy([rule("Group:g", actions={Action.SUB})])
    assert may(policy, on_topic(f"{prefix}g", Action.PUB))
    assert not may(policy, on_topic(f"{prefix}other", Action.PUB))
    assert not may(Policy([rule("Topic:*", actions=set(Action))]), on_topic(f"{prefix}g", Action.SUB))
