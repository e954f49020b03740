"""Measures seconds and processor time of a client, and latencies of single messages."""

from __future__ import annotations

import gc
import struct
import time
from collections.abc import Sequence

from benchmarks.peers.python.load import BODY_BYTES, Load

Answer = dict[str, float]
_STAMP = struct.Struct(">qq")  # number of the message, and when it was due
_FILLER = bytes(BODY_BYTES - _STAMP.size)
STALLED_S = 60.0


class StalledError(Exception):
    """Error for messages that did not arrive within STALLED_S."""


class Meter:
    """Measures from its creation. The processor time is that of all threads of this process."""

    def __init__(self) -> None:
        gc.freeze()  # otherwise a full garbage collection would depend on the size of the client's package
        self._began, self._cpu_s = time.perf_counter(), time.process_time()

    @property
    def seconds(self) -> float:
        """Return the seconds since the start."""
        return time.perf_counter() - self._began

    def answer(self, messages: int) -> Answer:
        """Return the rate of *messages* since the start, and the processor time of each in µs."""
        cpu_s, seconds = time.process_time() - self._cpu_s, self.seconds
        return {"messages_per_s": messages / seconds, "cpu_us": cpu_s / messages * 1e6, "messages": messages}


class Pass:
    """One pass over the topic. With `reads_bodies`, the bytes of each body are counted."""

    def __init__(self, load: Load, *, reads_bodies: bool) -> None:
        self._load = load
        self._reads_bodies = reads_bodies
        self._received = self._bytes = 0
        self._progress_s = time.monotonic()

    def add(self, bodies: Sequence[bytes]) -> None:
        """Count *bodies*. Raises StalledError if none arrived for STALLED_S."""
        if not len(bodies):
            if time.monotonic() - self._progress_s > STALLED_S:
                raise StalledError(f"{self._received:,} of {self._load.messages:,} messages arrived")
            return
        self._progress_s = time.monotonic()
        self._received += len(bodies)
        if self._reads_bodies:
            self._bytes += sum(map(len, bodies))

    def is_over(self) -> bool:
        """Return True when all messages arrived. Raises ValueError for too many messages or other sizes."""
        if self._received < self._load.messages:
            return False
        size = self._load.messages * BODY_BYTES
        if self._received > self._load.messages or (self._reads_bodies and self._bytes != size):
            raise ValueError(f"expected {self._load.messages:,} messages, got {self._received:,} of {self._bytes:,} B")
        return True


class Latencies:
    """The latencies of an open loop, from when a message was due. Messages of the warm-up do not count."""

    def __init__(self, load: Load) -> None:
        self.warm = int(load.rate * load.warm_s)
        self.count = self.warm + max(1, int(load.rate * load.measured_s))
        self._milliseconds: list[float] = []
        self._seen = 0
        self._progress_s = time.monotonic()

    def body(self, number: int, due_ns: int) -> bytes:
        """Return the body of a message."""
        return _STAMP.pack(number, due_ns) + _FILLER

    def add(self, bodies: Sequence[bytes]) -> bool:
        """Note the arrival of *bodies*; return True when all messages arrived. Raises StalledError."""
        now_ns = time.perf_counter_ns()
        for body in bodies:
            number, due_ns = _STAMP.unpack_from(body)
            if number >= self.warm:
                self._milliseconds.append((now_ns - due_ns) / 1e6)
        self._seen += len(bodies)
        now_s = time.monotonic()
        if bodies:
            self._progress_s = now_s
        elif now_s - self._progress_s > STALLED_S:
            raise StalledError(f"{self._seen:,} of {self.count:,} messages arrived")
        return self._seen >= self.count

    def answer(self) -> Answer:
        """Return p50, p99 and the greatest latency in ms. Raises ValueError unless each message arrived once."""
        ordered = sorted(self._milliseconds)
        if len(ordered) != self.count - self.warm:
            raise ValueError(f"expected {self.count - self.warm:,} latencies, got {len(ordered):,}")
        p50, p99 = (ordered[int(len(ordered) * share)] for share in (0.5, 0.99))
        return {"p50_ms": p50, "p99_ms": p99, "max_ms": ordered[-1], "samples": len(ordered)}
