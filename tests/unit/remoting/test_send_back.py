"""Messages that a consumer gives back."""

from __future__ import annotations

import pytest

from tidemark.errors import FieldIllegalError
from tidemark.remoting.send_back import SEND_BACK, SendBackRequest

FIELDS = {
    "offset": "3981438",
    "group": "g",
    "delayLevel": "-1",
    "originMsgId": "FD",
    "originTopic": "T",
    "unitMode": "false",
    "maxReconsumeTimes": "2",
}


def test_both_directions_have_the_fields_of_the_request() -> None:
    assert SEND_BACK.read({**FIELDS, "bname": "broker-a"}) == SendBackRequest(3981438, "g", -1, "FD", "T", False, 2)
    assert SEND_BACK.write(SendBackRequest(3981438, "g", -1, "FD", "T", False, 2)) == FIELDS


def test_absent_fields_have_their_defaults() -> None:
    """A captured request has neither id nor topic of the message."""
    found = SEND_BACK.read({"offset": "0", "group": "g", "delayLevel": "0", "maxReconsumeTimes": "16"})
    assert found == SendBackRequest(0, "g", 0, None, None, False, 16)
    assert SEND_BACK.read({"offset": "0", "group": "g", "delayLevel": "0"}).max_reconsume_times is None


@pytest.mark.parametrize("field", ["offset", "group", "delayLevel"])
def test_missing_required_field_is_named(field: str) -> None:
    with pytest.raises(FieldIllegalError, match=f"^{field} is missing"):
        SEND_BACK.read({name: value for name, value in FIELDS.items() if name != field})
