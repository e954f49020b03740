"""Omission of the tracebacks of Spark's Python workers whose connection Spark has closed, although nothing is wrong.

Spark closes the connection of a worker whose rows it does not need (`show`, `limit`), and of one that was idle for a
minute. The worker then fails to write, and pyspark.daemon, from which it was forked, prints the traceback of a
BrokenPipeError on standard error. Spark has no setting against that.
"""

from __future__ import annotations

import sys
import traceback
from types import SimpleNamespace

_CLOSED = (BrokenPipeError, ConnectionResetError)


def omit_tracebacks_of_closed_connections() -> None:
    """Make pyspark.daemon print other tracebacks only. No-op in a process that is no worker of its."""
    main = sys.modules["__main__"]
    if getattr(getattr(main, "__spec__", None), "name", None) == "pyspark.daemon":
        main.__dict__["traceback"] = SimpleNamespace(**vars(traceback) | {"print_exc": _print_exc})


def _print_exc() -> None:
    if not isinstance(sys.exc_info()[1], _CLOSED):
        traceback.print_exc()
