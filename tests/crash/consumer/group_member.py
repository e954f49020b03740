"""A member of a group in a separate process: writes each handled body to a file, then asks for the next one.

python -m tests.crash.consumer.group_member URL FILE
"""

from __future__ import annotations

import sys

from tidemark.client import Consumer


def main(url: str, path: str) -> None:
    """Handle messages until the process is killed."""
    settings = {"group": "billing", "url": url, "session_timeout_s": 1.5, "auto_commit_interval_s": 0.05}
    with open(path, "ab", buffering=0) as handled, Consumer("orders", **settings) as consumer:  # type: ignore[arg-type]
        while True:
            for message in consumer.poll(0.2, max_messages=5):
                handled.write(message.body + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
