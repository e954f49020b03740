"""The other members of the group, and their descriptions of themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

from tidemark.errors import StoreError
from tidemark.replication.group_state import GroupState
from tidemark.replication.stored_state import decode_state

PATIENT_S = 2.0  # for answers on which an order of an operator depends
SHORT_S = 0.7  # for answers that are asked for again
_WRITER = 1


class Described(Protocol):
    """A part of a member's description.

    state           of the group as that member knows it, JSON; empty for none
    role            1 for the writer
    follows_writer  the member is a replica, and has a stream from a writer
    """

    @property
    def member(self) -> str: ...
    @property
    def identity(self) -> str: ...
    @property
    def role(self) -> int: ...
    @property
    def promised_epoch(self) -> int: ...
    @property
    def state(self) -> bytes: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def follows_writer(self) -> bool: ...


Describe = Callable[[str, float], Coroutine[Any, Any, Described]]
"""Asks the member at an address, which is given these seconds for its answer."""


class OtherMembers:
    """The other members, with their addresses by their names."""

    def __init__(self, addresses: Mapping[str, str], describe: Describe) -> None:
        self._addresses = addresses
        self._describe = describe

    def __len__(self) -> int:
        return len(self._addresses)

    async def ask(self, timeout_s: float) -> list[Described]:
        """Return the descriptions of those that answer in time."""
        asked = [self._describe(address, timeout_s) for address in self._addresses.values()]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, StoreError):
                raise answer
        return [answer for answer in answers if not isinstance(answer, BaseException)]

    async def find_writer(self, epoch: int) -> str:
        """Return the address of the first that says it is the writer of *epoch* or a later one; "" if none does."""
        tasks = [asyncio.create_task(self._address_of_writer(one, epoch)) for one in self._addresses.values()]
        try:
            for answer in asyncio.as_completed(tasks):
                if address := await answer:
                    return address
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return ""

    async def _address_of_writer(self, address: str, epoch: int) -> str:
        try:
            answer = await self._describe(address, SHORT_S)
        except StoreError:
            return ""
        return address if is_writer(answer) and answer.promised_epoch >= epoch else ""


def is_writer(described: Described) -> bool:
    """Return True if the member says that it is the writer."""
    return described.role == _WRITER


def newest_state(known: GroupState | None, answers: Sequence[Described]) -> GroupState | None:
    """Return the newest of the *known* state and those that other members know; None if there is none."""
    states = [known, *(decode_state(answer.state) if answer.state else None for answer in answers)]
    return max((state for state in states if state is not None), key=lambda state: state.age, default=None)
