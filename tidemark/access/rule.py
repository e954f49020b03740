"""Policy: decides by rules. The default is to deny, and a Deny rule takes precedence over every Allow rule."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import NamedTuple

from tidemark.access.identity import Identity
from tidemark.access.right import Action, ResourceKind, Right

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_MOST_DECISIONS = 100_000  # size of the cache


class Pattern(NamedTuple):
    """A resource pattern. kind: None: any. name: the exact name, or a prefix of names."""

    kind: ResourceKind | None
    name: str
    is_prefix: bool

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """Parse `Topic:orders`, `Topic:orders-*`, `Group:*`, `Cluster:*` or `*`. Raises ValueError otherwise."""
        if text == "*":
            return cls(None, "", True)
        kind, colon, name = text.partition(":")
        if not colon or kind not in list(ResourceKind) or not name or "*" in name[:-1]:
            raise ValueError(f"{text!r} is not a pattern: write Topic:name, Topic:prefix-*, Group:…, Cluster:… or *")
        return cls(ResourceKind(kind), name.removesuffix("*"), name.endswith("*"))

    def matches(self, right: Right) -> bool:
        """Return True if the pattern matches the resource of *right*."""
        if self.kind is not None and self.kind is not right.kind:
            return False
        return right.name.startswith(self.name) if self.is_prefix else right.name == self.name


class Rule(NamedTuple):
    """A rule of the access file.

    principals, roles  callers to which it applies; "*" in principals: every authenticated caller
    networks           client networks; empty: any address
    """

    principals: frozenset[str]
    roles: frozenset[str]
    patterns: tuple[Pattern, ...]
    actions: frozenset[Action]
    networks: tuple[Network, ...]
    denies: bool

    def is_about(self, identity: Identity, right: Right, address: str) -> bool:
        """Return True if the rule applies to this caller, right and address."""
        return (
            ("*" in self.principals or identity.name in self.principals or not self.roles.isdisjoint(identity.roles))
            and any(pattern.matches(right) for pattern in self.patterns)
            and (not self.networks or _is_in(address, self.networks))
        )


def _is_in(address: str, networks: Iterable[Network]) -> bool:
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return any(found in network for network in networks)


class Policy:
    """All rules of one access file, with a cache of decisions. Thread-safe."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = tuple(rules)
        self._by_place = any(rule.networks for rule in self._rules)
        self._decisions: dict[tuple[Identity, Right, str], bool] = {}

    def allows(self, identity: Identity, right: Right, address: str) -> bool:
        """Return True if at least one action of *right* is allowed and not denied."""
        key = (identity, right, address if self._by_place else "")
        decided = self._decisions.get(key)
        if decided is None:
            decided = self._decide(identity, right, address)
            if len(self._decisions) >= _MOST_DECISIONS:
                self._decisions.clear()
            self._decisions[key] = decided
        return decided

    def _decide(self, identity: Identity, right: Right, address: str) -> bool:
        about = [rule for rule in self._rules if rule.is_about(identity, right, address)]
        denied = {action for rule in about if rule.denies for action in rule.actions}
        allowed = {action for rule in about if not rule.denies for action in rule.actions}
        return not allowed.isdisjoint(set(right.actions) - denied)
