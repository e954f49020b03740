"""Writer services with one rule of replication broken: `python -m tests.replication.nemesis.mutants NAME`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from services.writer.__main__ import main
from services.writer.log import open_store
from tidemark.replication.group_state import GroupState
from tidemark.replication.in_sync_set import InSyncSet

MUTANTS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    # acknowledged although no replica has it
    "commits_alone": lambda: mock.patch.object(InSyncSet, "waited_for", property(lambda self: {self._writer})),
    # a member that lacks acknowledged messages becomes the writer
    "elects_anybody": lambda: mock.patch.object(GroupState, "can_elect", return_value=True),
    # the next writer does not know what the last one has stored
    "forgets_repeats": lambda: mock.patch.object(open_store, "_rebuild_bytes", return_value=0),
}

if __name__ == "__main__":
    with MUTANTS[sys.argv.pop(1)]():  # the rest is for the writer
        sys.exit(main())
