from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tidemark.client.own_process import OwnProcess
from tidemark.errors import ForkedProcessError


def is_true_in_a_fork(check: Callable[[], bool]) -> bool:
    """Return the outcome of *check* in a forked process."""
    pid = os.fork()
    if pid == 0:
        outcome = 1
        try:
            outcome = 0 if check() else 1
        finally:
            os._exit(outcome)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_the_process_that_made_the_client_may_use_it() -> None:
    process = OwnProcess("Producer")
    process.require()
    assert process.is_this_one


def test_a_forked_process_is_refused_with_both_process_ids() -> None:
    process, parent = OwnProcess("Producer"), os.getpid()

    def is_refused() -> bool:
        with pytest.raises(ForkedProcessError, match="this Producer was created in process") as refused:
            process.require()
        facts = refused.value.facts
        return not process.is_this_one and facts == {"made_in": parent, "process": os.getpid()}

    assert is_true_in_a_fork(is_refused)


def test_a_client_created_after_the_fork_is_accepted() -> None:
    assert is_true_in_a_fork(lambda: OwnProcess("Producer").is_this_one)
