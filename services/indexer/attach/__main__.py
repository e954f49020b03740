"""Entry point of the follower: reads the settings, configures logging, locks the state folder, and follows."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from types import FrameType

import structlog

from tidemark.errors import StoreError
from tidemark.index.warm_up import warm_up
from tidemark.settings.door import SettingsRefusedError, read_settings
from tidemark.settings.logs import set_up_logging
from tidemark.store.lock import FolderLock
from tidemark.store.open_files_limit import allow_many_files
from tidemark.store.paths import StorePaths
from tidemark.store.safety import require_safe_store
from tidemark.store.storage import DiskStorage, Storage

from .config import AttachSettings
from .follower import Follower
from .key_follower import KeyFollower

log = structlog.get_logger()
_LEAST_PAUSE_S = 0.001
_PAUSE_GROWTH = 1.05  # ten times the least pause after 50 polls


def main(arguments: list[str] | None = None) -> int:
    """Follow until a signal; return the exit status: 0 stopped, 1 failed, 2 bad settings."""
    try:
        settings = read_settings("attach", AttachSettings, sys.argv[1:] if arguments is None else arguments)
    except SettingsRefusedError as error:
        sys.stderr.writelines(f"{line}\n" for line in error.lines)
        return 2
    set_up_logging(settings.log_level)
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        allow_many_files()
        warm_up()
        _own_and_follow(settings, stopping)
    except StoreError as error:
        log.error("attach_failed", error=type(error).__name__, message=error.message, **error.facts)
        return 1
    except OSError as error:
        log.error("attach_failed", error=type(error).__name__, message=str(error))
        return 1
    log.info("attach_stopped")
    return 0


def _own_and_follow(settings: AttachSettings, stopping: threading.Event) -> None:
    paths, storage = settings.paths, DiskStorage()
    require_safe_store(paths)
    storage.make_folder(paths.indexer)
    lock = FolderLock(paths.indexer / "lock")
    try:
        lock.require()
        _follow(settings, paths, storage, stopping)
    finally:
        lock.release()


def _follow(settings: AttachSettings, paths: StorePaths, storage: Storage, stopping: threading.Event) -> None:
    with contextlib.ExitStack() as closing:
        follower = Follower(paths, storage)
        closing.callback(follower.close)
        keys = None
        if settings.attach_index:
            keys = KeyFollower(paths, storage, size=settings.index_size)
            closing.callback(keys.close)
        log.info("attach_started", store_root=str(paths.root), state_root=str(paths.own), watermark=follower.position)
        pause, term, building = _LEAST_PAUSE_S, follower.term, False
        while not stopping.is_set():
            moved = follower.poll()
            if follower.term != term:
                term = follower.term
                log.warning("log_was_cut", term=term, watermark=follower.position)
            if keys is not None:
                moved |= keys.poll(follower.position)
                if keys.is_building and not building:
                    building = True
                    log.info("key_index_started", folder=str(paths.own / "index"))
            pause = _LEAST_PAUSE_S if moved else min(pause * _PAUSE_GROWTH, settings.attach_poll_ms / 1000)
            if not moved:
                stopping.wait(pause)


if __name__ == "__main__":
    sys.exit(main())
