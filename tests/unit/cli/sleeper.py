"""A service that does nothing: `python -m tests.unit.cli.sleeper [stubborn | fail]`."""

import signal
import sys
import threading


def main(mode: str) -> None:
    """Print READY and wait for SIGTERM."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, signal.SIG_IGN if mode == "stubborn" else lambda *_: ended.set())
    sys.stdout.write("READY\n")
    sys.stdout.flush()
    if mode == "fail":
        sys.exit("the disk is on fire")
    ended.wait()
    sys.stdout.write("BYE\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
