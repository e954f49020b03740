"""Faults of machines, links and disks, and of operators. Each ends by itself."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

from tests.etcd import Etcd
from tests.replication.elected import Elected
from tests.replication.members import SEGMENT_BYTES
from tests.replication.nemesis.network import Network
from tests.waiting import until
from tidemark.errors import StoreError

ETCD = "etcd"
_DISK_BYTES = 256 << 20


class LinkedMembers(Elected):
    """Members whose connections to each other and to etcd can be cut."""

    network: Network
    etcd: Etcd
    has_small_disks = False

    def mount_small_disks(self) -> None:
        """Give each member a disk of its own, which can be filled, if disks can be mounted here."""
        for name in self.ports:
            disk = self.disk(name)
            disk.mkdir(parents=True)
            mounting = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "tmpfs", str(disk)]
            if subprocess.run(mounting, capture_output=True, check=False).returncode:
                return
        self.has_small_disks = True

    def disk(self, name: str) -> Path:
        return self.root / "disks" / name

    def fill_disk(self, name: str) -> Path:
        """Fill a member's disk with a file, and return that."""
        filler = self.disk(name) / "filler"
        with filler.open("wb") as file:
            for size in (1 << 20, 1 << 12):
                with contextlib.suppress(OSError):
                    while True:
                        os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), size)
        return filler

    def folder(self, name: str) -> Path:
        return self.disk(name) / "store" if self.has_small_disks else super().folder(name)

    def close(self) -> None:
        super().close()
        for name in self.ports:
            if os.path.ismount(self.disk(name)):
                subprocess.run(["umount", "--lazy", str(self.disk(name))], check=True)

    def address_from(self, name: str, other: str) -> str:
        if name == other:
            return self.address(other)
        return f"127.0.0.1:{self.network.port(name, other, self.ports[other])}"

    def found(self) -> str:
        return f"{super().found()}\n{self.etcd.log()}"

    def is_whole(self) -> bool:
        """Return True if all members are in sync."""
        writer = self.writer()
        try:
            return writer is not None and self.status(writer).in_sync == len(self.ports)
        except StoreError:
            return False

    def settings(self, name: str, **more: str) -> dict[str, str]:
        ports = [self.network.port(name, f"{ETCD}{number}", port) for number, port in enumerate(self.etcd.ports)]
        addresses = ",".join(f"127.0.0.1:{port}" for port in ports)
        return super().settings(name, **{"TIDEMARK_GROUP_STORE": f"etcd://{addresses}", **more})


class Flipped(NamedTuple):
    """A damaged byte of a file of the log. right: its value before."""

    file: Path
    at: int
    right: int

    def is_repaired(self) -> bool:
        with self.file.open("rb") as opened:
            return os.pread(opened.fileno(), 1, self.at)[0] == self.right


class Nemesis:
    """Chooses faults by a seed, more often of the writer than of a replica. only: names of the faults; empty: all."""

    def __init__(self, members: LinkedMembers, seed: int, only: Collection[str] = ()) -> None:
        self._members = members
        self._network = members.network
        self._etcd = members.etcd
        self._random = random.Random(seed)
        self.done: list[str] = []
        self._faults: list[Callable[[str], None]] = [
            self._kill,
            self._kill,
            self._pause,
            self._pause,
            self._stutter,
            self._cut_off,
            self._cut_from_members,
            self._cut_from_etcd,
            self._cut_one_way,
            self._kill_etcd,
            self._wipe,
            self._copy_folder,
            self._kill_all,
            self._hand_over,
            self._rolling_restart,
            self._full_disk,
            self._flip_bit,
        ]
        self._faults = [fault for fault in self._faults if not only or fault.__name__.strip("_") in only]
        self._flipped: list[Flipped] = []

    def run(self, seconds: float) -> None:
        """Make faults for this time."""
        end = time.monotonic() + seconds
        faults = self._random.sample(self._faults, len(self._faults))  # each kind before the first is repeated
        while time.monotonic() < end:
            fault = faults.pop() if faults else self._random.choice(self._faults)
            name = self._victim()
            self.done.append(f"{fault.__name__.strip('_')} {name}")
            fault(name)
            time.sleep(self._random.uniform(0.5, 2))

    def _victim(self) -> str:
        writer = self._members.writer()
        names = list(self._members.ports)
        return writer if writer is not None and self._random.random() < 0.6 else self._random.choice(names)

    def _wait(self, least: float = 1.0, most: float = 5.0) -> None:
        time.sleep(self._random.uniform(least, most))

    def _kill(self, name: str) -> None:
        self._members.kill(name)
        self._wait(0, 4)
        self._members.launch(name)

    def _pause(self, name: str) -> None:
        self._members.signal(name, signal.SIGSTOP)
        self._wait(1, 7)
        self._members.signal(name, signal.SIGCONT)

    def _stutter(self, name: str) -> None:
        """A slow machine or disk."""
        for _ in range(15):
            self._members.signal(name, signal.SIGSTOP)
            time.sleep(0.2)
            self._members.signal(name, signal.SIGCONT)
            time.sleep(0.03)

    def _cut(self, name: str, others: list[str], *, there: bool = True, back: bool = True) -> None:
        for other in others:
            self._network.cut(name, other, there=there, back=back)
            if other in self._members.ports:
                self._network.cut(other, name, there=back, back=there)
        self._wait(2, 7)
        self._network.heal()

    def _others(self, name: str) -> list[str]:
        return [other for other in self._members.ports if other != name]

    def _cut_off(self, name: str) -> None:
        self._cut(name, self._network.targets(name))

    def _cut_from_members(self, name: str) -> None:
        self._cut(name, self._others(name))

    def _cut_from_etcd(self, name: str) -> None:
        self._cut(name, [target for target in self._network.targets(name) if target.startswith(ETCD)])

    def _cut_one_way(self, name: str) -> None:
        there = self._random.random() < 0.5
        self._cut(name, self._others(name), there=there, back=not there)

    def _kill_etcd(self, _: str) -> None:
        number = self._random.randrange(len(self._etcd.ports))
        self._etcd.kill(number)
        self._wait(1, 3)
        self._etcd.start(number)

    def _wipe(self, name: str) -> None:
        """A lost disk. Another one is lost only after the set is whole again."""
        if not self._members.is_whole():
            return
        self.until_repaired()  # a copy of a bit without a checksum would outvote the right one
        self._members.kill_machine(name)
        shutil.rmtree(self._members.folder(name))
        self._members.launch(name)
        self._until_whole()

    def _copy_folder(self, name: str) -> None:
        """An operator's mistake: a member starts with the folder of another one."""
        if not self._members.is_whole():
            return
        self.until_repaired()  # a copy of a bit without a checksum would outvote the right one
        source = self._random.choice(self._others(name))
        self._members.kill_machine(name)
        folder = self._members.folder(name)
        shutil.rmtree(folder)
        self._members.signal(source, signal.SIGSTOP)
        shutil.copytree(self._members.folder(source), folder, ignore=shutil.ignore_patterns("lock"))
        self._members.signal(source, signal.SIGCONT)
        self._members.launch(name)
        self._wait(1, 3)
        self._members.kill_machine(name)
        shutil.rmtree(folder)
        self._members.launch(name)
        self._until_whole()

    def _kill_all(self, _: str) -> None:
        names = list(self._members.ports)
        self._members.kill(*names)
        self._random.shuffle(names)
        for name in names:
            self._members.launch(name)
            self._wait(0, 1)

    def _hand_over(self, name: str) -> None:
        writer = self._members.writer()
        target = self._random.choice(self._others(writer or name))
        try:
            self._members.group(writer or name).hand_over(target)
        except StoreError as error:  # it is not in sync
            self.done.append(f"  not: {error.message[:80]}")

    def _rolling_restart(self, _: str) -> None:
        for name in list(self._members.ports):
            self._members.stop_gently(name)
            self._members.launch(name)
            self._wait(1, 2)

    def _full_disk(self, name: str) -> None:
        """Fill the disk of a member, whose pipeline and query service need it, too."""
        if self._members.has_small_disks:
            filler = self._members.fill_disk(name)
            self._wait(2, 5)
            filler.unlink()
            return
        self._members.kill(name)
        self._members.launch(name, TIDEMARK_MIN_FREE_DISK_BYTES=str(1 << 60))
        self._wait(2, 4)
        self._members.kill(name)
        self._members.launch(name)

    def _flip_bit(self, name: str) -> None:
        """A bad sector in a file of the log that is full and committed."""
        described = self._members.described(name)
        files = sorted((self._members.folder(name) / "commitlog").iterdir())
        committed = 0 if described is None else described.committed_offset or 0
        sealed = [file for file in files if int(file.name) + SEGMENT_BYTES <= committed]
        if not sealed:
            return
        file, at = self._random.choice(sealed), self._random.randrange(SEGMENT_BYTES)
        with file.open("r+b", buffering=0) as opened:
            right = os.pread(opened.fileno(), 1, at)[0]
            os.pwrite(opened.fileno(), bytes([right ^ 1 << self._random.randrange(8)]), at)
        self._flipped.append(Flipped(file, at, right))
        self._wait(0, 3)

    def until_repaired(self) -> None:
        """Wait until all flipped bits are as they were."""
        for one in self._flipped:
            until(one.is_repaired, f"byte {one.at} of {one.file} is repaired", found=self._members.found)

    def _until_whole(self) -> None:
        deadline = time.monotonic() + 30
        while not self._members.is_whole() and time.monotonic() < deadline:
            time.sleep(0.1)
