"""Disk: a file system on a loop device that can lose power.

The cut is the file system's own shutdown (FS_IOC_SHUTDOWN without a flush of its journal): everything that was not
written back is lost, and the next mount replays the journal, as after a power cut.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
import time
from pathlib import Path

EXT4, XFS = "ext4", "xfs"
FILE_SYSTEMS = (EXT4, XFS)
_SHUTDOWN = 0x8004587D  # _IOR('X', 125, __u32), the same number for ext4 and xfs
_NO_LOG_FLUSH = 2
_SIZE_BYTES = 600 << 20
_FORCE = {EXT4: "-F", XFS: "-f"}
_RELEASE_S = 60.0
_PAUSE_S = 0.2


def missing_for(file_system: str, folder: Path) -> str | None:
    """Return why no disk with *file_system* can be made here; None if one can. Tries to make one below *folder*."""
    if os.geteuid() != 0:
        return "only root can mount a loop device"
    for command in (f"mkfs.{file_system}", "losetup", "mount"):
        if shutil.which(command) is None:
            return f"there is no {command}"
    disk = Disk(folder / f"probe-{file_system}", file_system)
    try:
        disk.make()
        disk.cut()
        disk.mount_again()
    except (OSError, subprocess.CalledProcessError) as error:
        return f"a loop device with {file_system} cannot be made, cut and mounted again: {_text_of(error)}"
    finally:
        disk.remove()
    return None


class Disk:
    """A file system in the file *folder*.img, mounted at *folder*."""

    def __init__(self, folder: Path, file_system: str) -> None:
        self.folder = folder
        self._image = folder.with_suffix(".img")
        self._file_system = file_system

    def make(self) -> None:
        """Make the file system and mount it."""
        self.folder.mkdir(parents=True)
        with self._image.open("wb") as image:
            image.truncate(_SIZE_BYTES)
        _run(f"mkfs.{self._file_system}", "-q", _FORCE[self._file_system], self._image)
        self._mount()

    def cut(self) -> float:
        """Cut the power and return the monotonic time just before; after it, every write fails."""
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            at = time.monotonic()
            fcntl.ioctl(folder, _SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
        finally:
            os.close(folder)
        return at

    def mount_again(self) -> None:
        """Mount after a cut, once every process that used the disk is gone. The journal is replayed."""
        deadline = time.monotonic() + _RELEASE_S
        while not self._is_released():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.folder} is still in use {_RELEASE_S:.0f} s after the cut")
            time.sleep(_PAUSE_S)
        self._mount()

    def remove(self) -> None:
        """Unmount, and delete the image."""
        subprocess.run(["umount", "--lazy", self.folder], capture_output=True, check=False)
        self._image.unlink(missing_ok=True)

    def _is_released(self) -> bool:
        """A mount namespace of a dying process keeps the old mount, and with it the loop device, for a moment.

        `os.path.ismount` cannot be asked: a stat of a file system that was shut down fails.
        """
        if self._is_mounted():
            subprocess.run(["umount", self.folder], capture_output=True, check=False)
        return not self._is_mounted() and not _run("losetup", "-j", self._image).strip()

    def _is_mounted(self) -> bool:
        mounts = Path("/proc/self/mounts").read_text().splitlines()
        return any(line.split()[1] == str(self.folder) for line in mounts)

    def _mount(self) -> None:
        _run("mount", "-o", "loop", self._image, self.folder)


def _run(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def _text_of(error: OSError | subprocess.CalledProcessError) -> str:
    return error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else str(error)
