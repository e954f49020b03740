"""A started writer, as a process: permanent objects are exempt from garbage collection."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import asyncio, gc, os, signal, sys
from services.writer.door import serve
from services.writer.config import WriterSettings

async def main():
    serving = asyncio.create_task(serve(WriterSettings(store_root=sys.argv[1], writer_listen="127.0.0.1:0")))
    for _ in range(300):
        await asyncio.sleep(0.1)
        if gc.get_freeze_count():
            break
    left = len(gc.get_objects())
    assert left < gc.get_freeze_count() / 10, (left, gc.get_freeze_count())
    os.kill(os.getpid(), signal.SIGTERM)
    assert await serving == 0

asyncio.run(main())
"""


def test_a_full_garbage_collection_visits_few_objects(tmp_path: Path) -> None:
    """It stops every thread: sixty milliseconds if it visits all loaded objects."""
    subprocess.run([sys.executable, "-c", _PROGRAM, str(tmp_path / "store")], check=True, timeout=120)
