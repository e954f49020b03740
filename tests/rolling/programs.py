"""Programs: threads that do what an application does, until they are told to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

Program = Callable[[threading.Event], None]


class Programs:
    """They run from `with` on until `stop`. Each is called with the event that tells it to end.

    errors     what reached a program, whatever it was; it has ended there
    longest_s  the longest that one of them waited for what it does
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
        """All have ended when this returns."""
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
