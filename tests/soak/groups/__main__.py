"""`python -m tests.soak.groups`: the consumer process. It runs until SIGTERM, and may be killed at any moment.

SOAK_FOLDER, SOAK_SEED and the addresses of the services come from the environment; SOAK_MUTATION names a fault to put
into the client.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.soak.groups.async_member import poll_async
from tests.soak.groups.members import Lives, handle, poll, poll_tables
from tests.soak.groups.mutations import MUTATIONS
from tests.soak.groups.plan import ASYNC, FLEETING, MAILING, READERS, SUBSCRIPTIONS, TABLES
from tests.soak.groups.recorder import Recorder
from tests.soak.history import HistoryFile

_GROUPS = {subscription.group: subscription for subscription in SUBSCRIPTIONS}


def main() -> None:
    """Run every member in a thread of its own until SIGTERM."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    if mutation := os.environ.get("SOAK_MUTATION"):
        MUTATIONS[mutation].put_in()
    writer, url = os.environ["TIDEMARK_WRITER_ADDRESS"], os.environ["TIDEMARK_QUERY_URL"]
    history = HistoryFile(_new_file(Path(os.environ["SOAK_FOLDER"])))
    ways: list[tuple[str, str, Callable[[Lives, Recorder], None]]] = [
        ("reader-1", READERS, poll),
        ("reader-2", READERS, poll),
        ("table", TABLES, poll_tables),
        ("async-1", ASYNC, poll_async),
        ("async-2", ASYNC, poll_async),
        ("mailer-1", MAILING, partial(handle, writer=writer)),
        ("mailer-2", MAILING, partial(handle, writer=writer)),
        ("fleeting", FLEETING, poll),
    ]
    run = history.path.stem.rpartition("-")[2]
    lives = [
        (Lives(f"{name}.{run}", _GROUPS[group], url, history, stop, os.environ["SOAK_SEED"]), way)
        for name, group, way in ways
    ]
    threads = [threading.Thread(target=one.run, args=(way,), name=one.name) for one, way in lives]
    for thread in threads:
        thread.start()
    print('{"event": "consumers_started"}', flush=True)
    for thread in threads:
        thread.join()
    history.close()
    print('{"event": "consumers_stopped"}', flush=True)


def _new_file(folder: Path) -> Path:
    """The history of this start: no other start writes to it."""
    number = len(list(folder.glob("history-groups-*.jsonl"))) + 1
    return folder / f"history-groups-{number:03d}.jsonl"


if __name__ == "__main__":
    main()
