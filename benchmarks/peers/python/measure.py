"""Runs one client's program against its server, and returns the figures of a row."""

from __future__ import annotations

from pathlib import Path

import orjson

from benchmarks.peers.figures import Figure
from benchmarks.peers.peer import Flush
from benchmarks.peers.peer import Load as Program
from benchmarks.peers.python.environment import python_of
from benchmarks.peers.python.load import LATENCY, Load
from benchmarks.peers.python.servers import SERVERS
from benchmarks.peers.python.systems import System

_PROGRAM = "benchmarks.peers.python.program"
_ROOT = Path(__file__).parents[3]


def measure(system: System, key: str, folder: Path, *, flush: Flush, load: Load) -> list[Figure]:
    """Return the figures of *key*: rate or percentiles, and processor time of the client for each message.

    Raises PeerFailedError if the client's program failed, ToolchainMissingError if it cannot be installed.
    """
    python = python_of(system)
    with SERVERS[system.server](folder / "server", flush, load) as addresses:
        task = orjson.dumps({"client": system.client, "addresses": addresses, "load": [*load]}).decode()
        command = [str(python), "-m", _PROGRAM, task]
        with Program(command, folder / "client", {"PYTHONPATH": str(_ROOT)}) as program:
            answer = program.answer()
    note = system.durability(flush)
    if load.workload == LATENCY:
        samples = f"{answer['samples']:,.0f} at {load.rate:,}/s, greatest {answer['max_ms']:.1f} ms; {note}"
        figures = [Figure(f"{key}_{name}", answer[f"{name}_ms"], "ms", samples) for name in ("p50", "p99")]
    else:
        figures = [Figure(key, answer["messages_per_s"], "msg/s", f"{answer['messages']:,.0f} messages; {note}")]
    return [*figures, Figure(f"{key}_cpu", answer["cpu_us"], "µs", f"processor time of the client per message; {note}")]
