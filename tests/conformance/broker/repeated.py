"""Work that is repeated in the background."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def repeated(work: Callable[[], object], *, although: type[Exception]) -> Iterator[None]:
    """Call *work* again and again in a thread until the block ends. although: an exception that it may raise."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.is_set():
            with contextlib.suppress(although):
                work()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
