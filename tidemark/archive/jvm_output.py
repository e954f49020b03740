"""Output of Spark's JVM and of its Python workers, which is of use only if the job fails."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections import deque
from collections.abc import Iterator

from tidemark.errors import StoreError, UnavailableError

_MOST_LINES = 500
_LAST_LINES_S = 2.0  # wait for the end of the output; of a JVM that still runs there is none


@contextlib.contextmanager
def held_output() -> Iterator[int]:
    """Provide a file descriptor; show its last lines on standard error if the body fails.

    They are not shown for a StoreError that gives the cause itself, which is each except UnavailableError.
    """
    reading, writing = os.pipe()
    lines: deque[str] = deque(maxlen=_MOST_LINES)
    reader = threading.Thread(target=_read, args=(reading, lines), daemon=True)
    reader.start()
    is_of_use = False
    try:
        yield writing
    except Exception as error:
        is_of_use = isinstance(error, UnavailableError) or not isinstance(error, StoreError)
        raise
    finally:
        os.close(writing)
        if is_of_use:
            reader.join(_LAST_LINES_S)
            sys.stderr.writelines(list(lines))


def _read(reading: int, lines: deque[str]) -> None:
    with open(reading, errors="replace") as output:
        lines.extend(output)
