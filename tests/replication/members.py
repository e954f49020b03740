"""The members of a replication group as processes, each with its own folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx

from tests.fixed_ports import fixed_port
from tests.replication.service_process import ServiceProcess
from tests.waiting import LONG_S, until
from tidemark.client import Producer
from tidemark.client.wire.group_admin import GroupMember, GroupStatus, ReplicationGroup
from tidemark.errors import StoreError

SEGMENT_BYTES = 1 << 18
_HTTP = httpx.Client(timeout=2)  # httpx.get reads all certificates at each call


class Members:
    """The processes by the members' names. environment: TIDEMARK_ settings of all members.

    with_readers: each member has a pipeline and a query service, too, and both kinds of frames
    """

    def __init__(
        self,
        root: Path,
        names: str = "abc",
        environment: Mapping[str, str] | None = None,
        *,
        with_readers: bool = False,
    ) -> None:
        self.root = root
        self.ports = {name: fixed_port() for name in names}
        self.query_ports = {name: fixed_port() for name in names}
        self._remoting_ports = {name: (fixed_port(), fixed_port()) for name in names}
        self.environment = dict(environment or {})
        self.program = ["services.writer"]
        self._with_readers = with_readers
        self._processes: dict[str, ServiceProcess] = {}
        self._readers: dict[str, list[ServiceProcess]] = {}

    @property
    def running(self) -> frozenset[str]:
        """The members whose processes were started, and not ended."""
        return frozenset(self._processes)

    def address(self, name: str) -> str:
        return f"127.0.0.1:{self.ports[name]}"

    def address_from(self, name: str, other: str) -> str:
        """Return the address at which member *name* reaches another one, or itself."""
        return self.address(other)

    @property
    def writers(self) -> str:
        """The addresses of all writer services, as a producer takes them."""
        return "|".join(map(self.address, self.ports))

    @property
    def url(self) -> str:
        """The addresses of all query services, as a consumer takes them."""
        return "|".join(f"http://127.0.0.1:{port}" for port in self.query_ports.values())

    def folder(self, name: str) -> Path:
        return self.root / name

    def settings(self, name: str, **more: str) -> dict[str, str]:
        """Return the environment of a member."""
        return {
            **os.environ,
            "TIDEMARK_STORE_ROOT": str(self.folder(name)),
            "TIDEMARK_WRITER_LISTEN": self.address(name),
            "TIDEMARK_WRITER_METRICS_LISTEN": "",
            "TIDEMARK_WRITER_REMOTING_LISTEN": self._remoting(name)[0],
            "TIDEMARK_QUERY_REMOTING_LISTEN": self._remoting(name)[1],
            "TIDEMARK_QUERY_LISTEN": f"127.0.0.1:{self.query_ports[name]}",
            "TIDEMARK_WRITER_ADDRESS": self.writers,
            "TIDEMARK_PIPELINE": "plain",
            "TIDEMARK_PIPELINE_METRICS_LISTEN": "",
            "TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES": str(SEGMENT_BYTES),
            "TIDEMARK_MIN_FREE_DISK_BYTES": "0",
            "TIDEMARK_REPLICATION": "sync",
            "TIDEMARK_MEMBER": name,
            "TIDEMARK_GROUP_MEMBERS": ",".join(f"{one}={self.address_from(name, one)}" for one in self.ports),
            **self.environment,
            **more,
        }

    def _remoting(self, name: str) -> tuple[str, str]:
        if not self._with_readers:
            return "", ""
        writer, query = self._remoting_ports[name]
        return f"127.0.0.1:{writer}", f"127.0.0.1:{query}"

    def start(self, *names: str, **more: str) -> None:
        """Start members, by default all, and wait until they answer."""
        self.launch(*names, **more)
        for name in names or self.ports:
            until(lambda name=name: self.described(name), f"member {name} answers")  # type: ignore[misc]
            if self._with_readers:
                until(lambda name=name: self.has_query(name), f"{name}'s query service answers")  # type: ignore[misc]

    def has_query(self, name: str) -> bool:
        try:
            return _HTTP.get(f"http://127.0.0.1:{self.query_ports[name]}/healthz").is_success
        except httpx.HTTPError:
            return False

    def launch(self, *names: str, **more: str) -> None:
        """Start members without a wait. more: settings of theirs alone."""
        for name in names or self.ports:
            self.folder(name).mkdir(parents=True, exist_ok=True)
            module, *arguments = self.program
            self._processes[name] = ServiceProcess(module, arguments, self.settings(name, **more), self.log(name))
            if self._with_readers:
                self.start_readers(name)

    def start_readers(self, name: str) -> None:
        """Start a member's pipeline and query service, unless they run."""
        if name not in self._readers:
            self._readers[name] = [self._reader(name, module) for module in ("pipeline", "query")]

    def _reader(self, name: str, module: str) -> ServiceProcess:
        log = self.root / f"{name}.{module}.log"
        return ServiceProcess(f"services.indexer.{module}", (), self.settings(name), log)

    def signal_pipeline(self, name: str, number: signal.Signals) -> None:
        self._readers[name][0].send_signal(number)

    def kill_query(self, name: str) -> None:
        self._readers[name][1].kill()
        self._readers[name][1].wait(LONG_S)

    def start_query(self, name: str) -> None:
        """Start a query service again that was killed."""
        self._readers[name][1] = self._reader(name, "query")

    def log(self, name: str) -> Path:
        return self.root / f"{name}.log"

    def signal(self, name: str, number: signal.Signals) -> None:
        self._processes[name].send_signal(number)

    def kill_machine(self, name: str) -> None:
        """End a member and its readers without a warning."""
        self.kill(name)
        for process in self._readers.pop(name, []):
            process.kill()
            process.wait(LONG_S)

    def ended_readers(self) -> dict[str, int]:
        """Return the exit statuses of pipelines and query services that have ended by themselves."""
        readers = {f"{name} {one.module}": one for name, both in self._readers.items() for one in both}
        return {name: one.exit_status for name, one in readers.items() if one.exit_status is not None}

    def stop_readers(self) -> None:
        """Stop all pipelines and query services."""
        for processes in self._readers.values():
            for process in processes:
                process.terminate()
            for process in processes:
                assert process.wait(LONG_S) == 0
        self._readers.clear()

    def kill(self, *names: str) -> None:
        """End members without a warning."""
        for name in names:
            self._processes[name].kill()
            self._processes.pop(name).wait(LONG_S)

    def stop(self, *names: str) -> None:
        """Stop members in order, by default all."""
        wanted = names or tuple(self._processes)
        for name in wanted:
            self._processes[name].terminate()
        for name in wanted:
            assert self._processes.pop(name).wait(LONG_S) == 0, self.log(name).read_text()[-3_000:]

    def stop_gently(self, name: str) -> None:
        """Stop a member, which may be in any state."""
        process = self._processes.pop(name)
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(LONG_S)

    def exit_status(self, name: str) -> int:
        """Wait until a member ends by itself."""
        return self._processes.pop(name).wait(LONG_S)

    def close(self) -> None:
        """End all processes."""
        for process in (*self._processes.values(), *(one for readers in self._readers.values() for one in readers)):
            process.kill()
            process.wait(LONG_S)

    # -- what the group knows -----------------------------------------------------------------------------------------

    def group(self, name: str) -> ReplicationGroup:
        return ReplicationGroup(self.address(name), timeout_s=10)

    def described(self, name: str) -> GroupMember | None:
        """Return a member's description of itself; None if it does not answer."""
        try:
            status = ReplicationGroup(self.address(name), timeout_s=2).status()
        except StoreError:
            return None
        return next(member for member in status.members if member.name == name)

    def status(self, name: str) -> GroupStatus:
        return ReplicationGroup(self.address(name), timeout_s=1).status()  # members may be paused

    def promote(self, name: str, *, stopped_writer: str = "", unclean: bool = False) -> int:
        return self.group(name).promote(name, stopped_writer=stopped_writer, unclean=unclean)

    def until_in_sync(self, writer: str, count: int) -> None:
        """Wait until *count* members are in sync, and have everything."""
        until(lambda: self.are_in_sync(writer, count), f"{count} members are in sync", found=self.found)

    def are_in_sync(self, writer: str, count: int) -> bool:
        """Return True if *writer* says that *count* members are in sync, and have everything."""
        try:
            status = self.status(writer)
        except StoreError:
            return False
        in_sync = [member for member in status.members if member.is_in_sync]
        ends = {(member.synced_offset, member.committed_offset) for member in in_sync}
        return status.writer == writer and len(in_sync) == count and len(ends) == 1

    def until_level(self, writer: str, *names: str) -> None:
        """Wait until these members have the writer's log, and know that it is committed."""

        def is_reached() -> bool:
            described = [self.described(name) for name in (writer, *names)]
            ends = {(one.end_offset, one.synced_offset, one.committed_offset) if one else None for one in described}
            return len(ends) == 1 and None not in ends

        until(is_reached, f"{names} are level with {writer}", found=self.found)

    def found(self) -> str:
        """Return what each member says of itself, and the end of its log."""
        return "\n".join(
            f"{name}: {self.described(name)}\n{self.log(name).read_text()[-2_000:]}" for name in self.ports
        )

    @contextlib.contextmanager
    def producer(self, name: str, timeout_s: float = LONG_S) -> Iterator[Producer]:
        with Producer(self.address(name), timeout_s=timeout_s) as made:
            yield made

    def log_files(self, name: str) -> dict[str, str]:
        """Return the hashes of a member's CommitLog files, without those that were only prepared."""
        return hashes(self.folder(name) / "commitlog")

    def queue_files(self, name: str) -> dict[str, str]:
        """Return the hashes of the queue files that a member's pipeline has built."""
        folder = self.folder(name)
        return {**hashes(folder / "consumequeue"), **hashes(folder / "batchconsumequeue")}


def hashes(folder: Path) -> dict[str, str]:
    """Return the hash of each file below *folder* that has other bytes than zeros."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and (data := path.read_bytes()).count(0) != len(data):
            found[str(path.relative_to(folder))] = hashlib.sha256(data).hexdigest()
    return found
