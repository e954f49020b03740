"""Cycles of a power test: load, cut, mount, start again, judge."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx

from tests.power.disk import Disk
from tests.power.judge import Knowledge, Losses, forget, losses, violations
from tests.power.load import Load, create_topics, read_all
from tests.soak.stack import Member, Stack
from tests.soak.store_check import check_store
from tidemark.local.local_stack import PIPELINE

_SHORTEST_LOAD_S, _LONGEST_LOAD_S = 4.0, 12.0
_START_S = 600.0
_AFTER_CUT_S = 0.3  # answers that arrive now raced with the cut
_SETTINGS = {"FLUSH_MODE": "", "MIN_FREE_DISK_BYTES": str(8 << 20), "DURABLE_INTERVAL_MS": "3000", "SHARDS": "2"}
Say = Callable[[str], None]


class PowerTest:
    """One store in one flush mode on one file system, through many cuts."""

    def __init__(self, folder: Path, file_system: str, mode: str, seed: str, window_s: float, say: Say) -> None:
        self._folder = folder
        self._mode = mode
        self._seed = f"{seed}-{file_system}-{mode}"
        self._choice = random.Random(self._seed)
        self._window_s = window_s
        self._say = say
        self._disk = Disk(folder / "disk", file_system)
        self._boot_id = folder / "boot_id"
        self._knowledge = Knowledge()
        self._stack: Stack | None = None

    def run(self, cycles: int) -> list[str]:
        """Cut the power *cycles* times and return the violations."""
        found: list[str] = []
        self._disk.make()
        try:
            self._boot()
            for cycle in range(cycles):
                found += [f"cycle {cycle}: {text}" for text in self._cycle(cycle)]
            found += self._end()
        except (TimeoutError, httpx.HTTPError, OSError) as error:
            found.append(f"{type(error).__name__}: {error}")
        finally:
            if self._stack is not None:
                self._stack.kill()
            self._disk.remove()
        return found

    def _boot(self) -> None:
        """Start the services in a new boot, and wait until everything that is stored can be read."""
        self._boot_id.write_text(f"{uuid.UUID(int=self._choice.getrandbits(128))}\n")
        stack = self._stack = Stack(self._folder, self._seed, store=self._disk.folder / "store")
        for name, member in stack.members.items():
            stack.members[name] = self._in_boot(member)
        stack.start()
        deadline = time.monotonic() + _START_S
        while not self._is_up(stack):
            ended = [name for name, member in stack.members.items() if member.starts and not member.is_running]
            if ended or time.monotonic() > deadline:
                name = ended[0] if ended else PIPELINE
                lines = stack.members[name].service.last_lines(5)
                raise TimeoutError(f"{name} {'ended' if ended else 'does not start'} after a cut: {lines}")
            time.sleep(0.2)
        create_topics(stack.writer_address)

    def _in_boot(self, member: Member) -> Member:
        settings = {**_SETTINGS, "FLUSH_MODE": self._mode}
        environment = {**member.environment, **{f"TIDEMARK_{name}": value for name, value in settings.items()}}
        arguments = ["tests.power.in_boot", str(self._boot_id), *member.arguments]
        return Member(member.name, environment, member.logs, arguments)

    def _is_up(self, stack: Stack) -> bool:
        if not stack.members[PIPELINE].is_at_work:
            return False
        try:
            answer = httpx.get(f"{stack.query_url}/v1/watermark", timeout=10).json()
            return bool(answer["watermark"]["physical_offset"] == answer["committed_offset"])
        except (httpx.HTTPError, KeyError, ValueError):
            return False

    def _cycle(self, cycle: int) -> Iterator[str]:
        stack = self._stack
        assert stack is not None, "it was started"
        load = Load(stack.writer_address, stack.query_url, self._knowledge, str(cycle), self._seed)
        load.start()
        time.sleep(self._choice.uniform(_SHORTEST_LOAD_S, _LONGEST_LOAD_S))
        cut_at = self._disk.cut()
        time.sleep(_AFTER_CUT_S)
        stack.kill()
        load.stop()
        self._disk.mount_again()
        self._boot()
        yield from self._judge(cycle, cut_at)

    def _judge(self, cycle: int, cut_at: float) -> Iterator[str]:
        assert self._stack is not None, "it was started"
        stored = read_all(self._stack.query_url)
        lost = losses(self._knowledge, stored)
        self._report(cycle, cut_at, lost)
        yield from violations(self._mode, self._knowledge, lost, stored, cut_at=cut_at, window_s=self._window_s)
        damage = httpx.get(f"{self._stack.query_url}/v1/corruptions", timeout=60).json()
        if damage["total"]:
            yield f"the ledger reports damage: {damage['corruptions'][:2]}"
        forget(self._knowledge, lost)

    def _report(self, cycle: int, cut_at: float, lost: Losses) -> None:
        ages = sorted(cut_at - known.at for known in self._knowledge.acknowledged.values())
        before = [age for age in ages if age >= 0]
        gone = sorted(cut_at - known.at for known in lost.acknowledged.values())
        nearest = f"the last one {before[0] * 1000:.1f} ms before the cut" if before else "none before the cut"
        text = f"{len(before)} acknowledged, {nearest}, {sum(age < 0.1 for age in before)} within 100 ms"
        late = sum(age < 0 for age in gone)
        if gone:
            span = f"{gone[0]:.3f} to {gone[-1]:.3f} s before the cut"
            text += f"; {len(gone)} lost ({late} answered after the cut), {span}"
        self._say(f"  cycle {cycle:<3} {text}; {len(lost.read)} read and lost")

    def _end(self) -> list[str]:
        """Stop in order, and compare the files with a rebuild."""
        assert self._stack is not None, "it was started"
        statuses = self._stack.stop()
        found = [f"{name} ended with {status}" for name, status in statuses.items() if status != 0]
        return found + [text for _, text in check_store(self._stack.store, self._folder)]
