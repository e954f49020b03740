"""PlainRequest: the request of a batch with only a topic, a queue and a request id, which most batches have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from tidemark.v1.commit_log_pb2 import AppendBatchRequest


@final
@dataclass(slots=True)
class PlainRequest:
    """An AppendBatchRequest without other fields. It is made and encoded without a protobuf object."""

    topic: str
    request_id: str
    queue_id: int = 0  # of the topic's route, so it is not negative


AppendRequest = AppendBatchRequest | PlainRequest
"""The request of a batch, without its messages."""
