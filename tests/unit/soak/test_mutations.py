"""The mutations of a soak's consumers: each changes the client, and names existing rules."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest

from tests.soak.checker import DRAINED, RULES
from tests.soak.groups.mutations import MUTATIONS
from tidemark.client import AsyncConsumer
from tidemark.client.consumer.group_member import GroupMember
from tidemark.client.consumer.retry_later import RetryLater

PATCHED = (GroupMember, RetryLater, AsyncConsumer)


@pytest.fixture(autouse=True)
def _without_mutations_afterwards() -> Iterator[None]:
    yield
    mock.patch.stopall()


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_replaces_a_method_of_the_client(name: str) -> None:
    before = [dict(vars(one)) for one in PATCHED]
    MUTATIONS[name].put_in()
    assert [dict(vars(one)) for one in PATCHED] != before


def test_rules_named_by_mutations_exist() -> None:
    named = {rule for mutation in MUTATIONS.values() for rule in mutation.rules}
    assert named | set(DRAINED) <= set(RULES)
