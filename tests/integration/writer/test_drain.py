"""A stopping writer reports that before it refuses connections."""

from __future__ import annotations

import threading
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.builders import wire_batch

from .harness import RunningWriter

pytestmark = pytest.mark.integration
SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


def test_a_draining_writer_accepts_appends(tmp_path: Path) -> None:
    """Health watchers are notified first; then clients have time to move."""
    with RunningWriter(tmp_path, drain_ms=1_000) as writer:
        watching = health_pb2_grpc.HealthStub(writer.channel).Watch(health_pb2.HealthCheckRequest(), timeout=30)
        assert next(watching).status == SERVING
        stopping = threading.Thread(target=writer.stop)
        stopping.start()
        assert next(watching).status == NOT_SERVING
        assert writer.append(packed=wire_batch((b"late", b"", 0))).queue_offset == 0
        with pytest.raises(grpc.RpcError):
            next(watching)
        stopping.join()
