"""The limit on bytes of large responses in memory."""

from __future__ import annotations

import pytest

from services.indexer.query.state.unsent_bytes_limit import UnsentBytesLimit
from tidemark.errors import InFlightLimitError


def test_an_answer_above_the_remaining_room_is_refused() -> None:
    """It passes once the others are sent."""
    answers = UnsentBytesLimit(100)
    with answers.held(60):
        with pytest.raises(InFlightLimitError), answers.held(41):
            pass
        with answers.held(40), pytest.raises(InFlightLimitError):
            answers.require_room()
    with answers.held(41):
        answers.require_room()


def test_an_answer_above_the_limit_is_accepted_alone() -> None:
    """Otherwise it could never pass."""
    answers = UnsentBytesLimit(100)
    with answers.held(500), pytest.raises(InFlightLimitError), answers.held(1):
        pass
    answers.require_room()
