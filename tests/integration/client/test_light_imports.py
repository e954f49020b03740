"""The imports of a program that only sends."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tidemark.local.local_stack import LocalStack

pytestmark = pytest.mark.integration

_PROGRAM = """
import sys
from tidemark.client import Message, Producer

with Producer(sys.argv[1]) as producer:
    producer.send("light", b"x", key="k", tag="A")
    producer.send_async("light", b"x").result()
    producer.send_batch([Message("light", b"x"), Message("light", b"y")])
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""
_HEAVY = {"isal", "llvmlite", "numba", "numpy", "opentelemetry", "pandas", "pyarrow", "pydantic", "pydantic_settings"}


def test_sending_needs_neither_numpy_nor_arrow(writer: LocalStack) -> None:
    """The client extra is installed without them."""
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM, writer.writer_address], capture_output=True, text=True, check=True, timeout=60
    )
    imported = set(run.stdout.split())
    assert "grpc" in imported
    assert imported & _HEAVY == set()
