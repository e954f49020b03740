"""`python -m services.writer` as a separate process, and a client that loads it until it dies."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

import grpc
import orjson

from tests.builders import properties, wire_batch
from tests.integration.writer.harness import Refusal
from tests.remoting_client import RemotingClient
from tidemark.format.message_id import decode_offset_message_id
from tidemark.remoting import Frame, RequestCode
from tidemark.remoting.sending import SendRequest, parse_send_answer, to_fields
from tidemark.v1 import commit_log_pb2 as pb
from tidemark.v1.commit_log_pb2_grpc import CommitLogServiceStub

_REPOSITORY = Path(__file__).resolve().parents[3]
SEGMENT_SIZE = 1 << 20


class WriterProcess:
    """A writer process. Settings are given by their environment names without the prefix."""

    def __init__(self, root: Path, **settings: object) -> None:
        self.root = root
        defaults = {"COMMIT_LOG_SEGMENT_SIZE_BYTES": SEGMENT_SIZE, "ADVERTISED_ADDRESS": "127.0.0.1:8081"}
        port = "127.0.0.1:0"
        listen = {"WRITER_LISTEN": port, "WRITER_REMOTING_LISTEN": port, "WRITER_METRICS_LISTEN": ""}
        given = {**defaults, **listen, "STORE_ROOT": root, "MIN_FREE_DISK_BYTES": 0, **settings}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "services.writer"],
            cwd=_REPOSITORY,
            env={**inherited, **{f"TIDEMARK_{name}": str(value) for name, value in given.items() if value is not None}},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.events: list[dict[str, Any]] = []
        self.lines: list[str] = []
        self._channel: grpc.Channel | None = None

    def wait_until_started(self) -> Self:
        """Wait until it serves; raise AssertionError with its output if it does not."""
        for line in self._read_lines():
            if self.events and self.events[-1].get("event") == "writer_started":
                self.address = f"127.0.0.1:{self.events[-1]['port']}"
                self.remoting_port = int(self.event("remoting_started")["port"])
                self._channel = grpc.insecure_channel(self.address)
                self.log: Any = CommitLogServiceStub(self._channel)  # type: ignore[no-untyped-call, unused-ignore]
                self._rest = threading.Thread(target=lambda: list(self._read_lines()))
                self._rest.start()
                return self
            assert line is not None
        raise AssertionError(f"the writer did not start: {self.lines}")

    def _read_lines(self) -> Iterator[str]:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.lines.append(line)
            if line.startswith("{"):
                self.events.append(orjson.loads(line))
            yield line

    def event(self, name: str) -> dict[str, Any]:
        """Return the first event of this name."""
        return next(event for event in self.events if event["event"] == name)

    def terminate(self) -> int:
        """Send SIGTERM; return the exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait for its end; return the exit code."""
        code = self._process.wait(30)
        self._close()
        return code

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()
        self._process.wait(30)
        self._close()

    def _close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._rest.join()
        assert self._process.stderr is not None
        self._process.stderr.close()


class Place(NamedTuple):
    """The first message's place of an acknowledged batch."""

    physical_offset: int
    queue_id: int
    queue_offset: int


class Load:
    """Streams batches of two messages, bodies ``<name>:<number>:<0|1>``, to four queues; records the answers."""

    def __init__(self, writer: WriterProcess, name: str, *, body_size: int = 200) -> None:
        self._name = name
        self._body_size = body_size
        self._stub = writer.log
        self._room = threading.Semaphore(64)
        self._stop = threading.Event()
        self.sent = 0
        self.acknowledged: dict[int, Any] = {}  # pb.AppendBatchResponse or Place
        self.refused: dict[int, Refusal] = {}
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def body(self, number: int, part: int) -> bytes:
        """Return the body of one message."""
        return b"%s:%d:%d:" % (self._name.encode(), number, part) + b"." * self._body_size

    def _requests(self) -> Iterator[pb.AppendStreamRequest]:
        while not self._stop.is_set():
            if not self._room.acquire(timeout=0.5):
                continue
            number = self.sent
            self.sent += 1
            wire = wire_batch((self.body(number, 0), b"", 0), (self.body(number, 1), b"", 0))
            batch = pb.AppendBatchRequest(
                topic="load", queue_id=number % 4, packed=wire, request_id=f"{self._name}-{number}"
            )
            yield pb.AppendStreamRequest(batches=[pb.AppendStreamRequest.Entry(correlation_id=number, batch=batch)])

    def _run(self) -> None:
        try:
            for response in self._stub.AppendStream(self._requests()):
                for result in response.results:
                    if result.WhichOneof("outcome") == "appended":
                        self.acknowledged[result.correlation_id] = result.appended
                    else:
                        self.refused[result.correlation_id] = Refusal(result.error)
                    self._room.release()
        except grpc.RpcError:
            pass  # it was killed
        finally:
            self._stop.set()

    def wait_for(self, acknowledged: int) -> None:
        """Wait until *acknowledged* batches are acknowledged."""
        deadline = time.monotonic() + 60
        while len(self.acknowledged) < acknowledged:
            assert time.monotonic() < deadline, f"{len(self.acknowledged)} of {acknowledged}"
            time.sleep(0.002)

    def stop(self) -> None:
        """Stop sending, and wait for the outstanding answers or for the writer's death."""
        self._stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive()


class RemotingLoad(Load):
    """The same over the remoting protocol, as RocketMQ's producers send. codes: those of refused batches."""

    def __init__(self, writer: WriterProcess, name: str, *, body_size: int = 200) -> None:
        self._client = RemotingClient(writer.remoting_port)
        self.codes: dict[int, int] = {}  # of refusals
        super().__init__(writer, name, body_size=body_size)

    def _run(self) -> None:
        sending = threading.Thread(target=self._send)
        sending.start()
        try:
            while sending.is_alive() or not self._room_is_full():
                with contextlib.suppress(TimeoutError):
                    self._take(self._client.receive(5))
        except (ConnectionError, OSError):
            pass  # it was killed
        finally:
            self._stop.set()
            sending.join()
            self._client.close()

    def _room_is_full(self) -> bool:
        return self.sent == len(self.acknowledged) + len(self.codes)

    def _send(self) -> None:
        with contextlib.suppress(OSError):
            while not self._stop.is_set():
                if self._room.acquire(timeout=0.5):
                    number = self.sent
                    self.sent += 1
                    bodies = (self.body(number, 0), self.body(number, 1))
                    wire = wire_batch(*((body, properties({"UNIQ_KEY": body[:40].decode()}), 0) for body in bodies))
                    asked = SendRequest("load", "load", number % 4, 0, 1_000, 0, batch=True)
                    code = RequestCode.SEND_BATCH_MESSAGE
                    self._client.send(code, to_fields(code, asked), wire)

    def _take(self, answer: Frame) -> None:
        number = answer.opaque - 1
        if answer.code == 0:
            found = parse_send_answer(answer.fields)
            place = decode_offset_message_id(found.message_ids[0]).physical_offset
            self.acknowledged[number] = Place(place, found.queue_id, found.queue_offset)
        else:
            self.codes[number] = answer.code
        self._room.release()
