"""Programs: threads that do an application's work until they are stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

Program = Callable[[threading.Event], None]


class Programs:
    """They run from `with` until `stop`. Each is called with the event that ends it.

    errors     exceptions of a program, which has ended at the first one
    longest_s  the longest wait of one of them
    """

    def __init__(self, programs: Sequence[Program]) -> None:
        self.errors: list[BaseException] = []
        self.longest_s = 0.0
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(program,)) for program in programs]

    def _run(self, program: Program) -> None:
        try:
            program(self._ending)
        except BaseException as error:
            self.errors.append(error)

    def stop(self) -> None:
        """Stop all; they have ended when this returns."""
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
