"""Bodies of messages in JSON."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any


def body_of(message: Mapping[str, Any]) -> bytes:
    """Return a body's bytes. A message without body_encoding is a Java client's, whose bodies are base64."""
    if message.get("body_encoding", "base64") == "base64":
        return base64.b64decode(message["body"], validate=True)
    return str(message["body"]).encode()
