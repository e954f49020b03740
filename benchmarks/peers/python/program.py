"""The program of every client: `python -m benchmarks.peers.python.program JSON` prints its figures as a line of JSON.

JSON: {"client": module and class, "addresses": of the server, "load": the fields of Load}
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import sys
from typing import Any

from benchmarks.peers.python import async_loops, loops
from benchmarks.peers.python.load import Load
from benchmarks.peers.python.meter import Answer

_CLIENTS = "benchmarks.peers.python.clients"


def main(task: dict[str, Any]) -> Answer:
    """Run one workload with one client and return its figures."""
    module, _, name = task["client"].partition(".")
    client_class = getattr(importlib.import_module(f"{_CLIENTS}.{module}"), name)
    load = Load(*task["load"])
    if inspect.iscoroutinefunction(client_class.send):
        return asyncio.run(_run_async(client_class, task, load))
    client = client_class(task["addresses"], load)
    try:
        return loops.run(client, load)
    finally:
        client.close()


async def _run_async(client_class: Any, task: dict[str, Any], load: Load) -> Answer:
    return await async_loops.run(client_class(task["addresses"], load), load)


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))), flush=True)
