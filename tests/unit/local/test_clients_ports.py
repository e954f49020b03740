"""The writer is up when RocketMQ's clients can connect, too: they are served a moment after gRPC."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemark.errors import UnavailableError
from tidemark.local import local_stack
from tidemark.local.local_stack import WRITER, LocalStack


@pytest.mark.parametrize("has_clients", [True, False])
def test_a_start_waits_until_the_writer_serves_rocketmqs_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_clients: bool
) -> None:
    monkeypatch.setattr(local_stack, "service_module", lambda _: "tests.unit.cli.sleeper")
    port = None if has_clients else 0
    stack = LocalStack(tmp_path / "data", services=(WRITER,), writer_remoting_port=port, start_timeout_s=0.3)
    monkeypatch.setattr(local_stack, "_listens", lambda asked: asked == stack.writer_port)
    if not has_clients:
        stack.start()
        stack.stop()
        return
    with pytest.raises(UnavailableError, match="writer is not healthy"):
        stack.start()
