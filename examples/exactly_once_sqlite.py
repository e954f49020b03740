"""Exactly once into SQLite: rows and the next offset are stored in one transaction.

A consumer delivers at least once: a process that dies after it stored rows and before it committed their offset gets
them again. If the offset is in the same database as the rows, one transaction stores both or neither, and `on_assigned`
seeks to the stored offset. This program kills the copying process twice, starts it again, and checks that no payment is
lost or duplicated.
"""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import uuid
from pathlib import Path
from tempfile import TemporaryDirectory

from tidemark.client import Consumer, Producer, TopicQueue

TOPIC = "payments"
PAYMENTS = 3_000
SCHEMA = """
CREATE TABLE IF NOT EXISTS payment (id TEXT, body TEXT);
CREATE TABLE IF NOT EXISTS position (topic TEXT, queue_id INTEGER, next_offset INTEGER, PRIMARY KEY (topic, queue_id));
"""


def copy(path: Path) -> None:
    """Copy payments to the database at *path* until killed, starting at the stored offsets."""
    database = sqlite3.connect(path)
    database.executescript(SCHEMA)

    def go_on(consumer: Consumer, queues: frozenset[TopicQueue]) -> None:
        stored = database.execute("SELECT topic, queue_id, next_offset FROM position")
        for topic, queue_id, next_offset in stored.fetchall():
            if (topic, queue_id) in queues:
                consumer.seek((topic, queue_id), next_offset)

    with Consumer(TOPIC, on_assigned=go_on, max_messages=100) as consumer:
        while True:
            messages = consumer.poll(timeout_s=1, max_messages=100)
            rows = [(message.keys[0], message.text()) for message in messages]
            ends = {message.queue: message.queue_offset + 1 for message in messages}
            with database:  # one transaction
                database.executemany("INSERT INTO payment VALUES (?, ?)", rows)
                print("storing", len(rows), flush=True)
                places = [(*queue, end) for queue, end in ends.items()]
                database.executemany("INSERT OR REPLACE INTO position VALUES (?, ?, ?)", places)


def main() -> None:
    """Send payments, run processes that copy them and are killed, and compare the result."""
    sent = send_payments()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "payments.db"
        for transactions in (3, 9):
            run_copy(path, transactions)
            print(f"killed; {len(stored_ids(path))} payments stored")
        run_copy(path, sys.maxsize, until=sent)
        stored = stored_ids(path)
    assert sent <= set(stored), "payments are lost"
    assert len(stored) == len(set(stored)), "payments are stored twice"
    print(f"all {len(sent)} payments stored, each once")


def send_payments() -> set[str]:
    """Send payments and return their ids."""
    payments = {uuid.uuid4().hex: f"{number}.00 EUR" for number in range(PAYMENTS)}
    with Producer() as producer:
        futures = [producer.send_async(TOPIC, amount, key=payment) for payment, amount in payments.items()]
        for future in futures:
            future.result()
    return set(payments)


def run_copy(path: Path, transactions: int, *, until: set[str] | None = None) -> None:
    """Run a copying process and kill it in its transaction number *transactions*, or when *until* is stored."""
    process = subprocess.Popen([sys.executable, __file__, path], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for number, _ in enumerate(process.stdout, start=1):
        if number >= transactions or (until is not None and until <= set(stored_ids(path))):
            break
    process.send_signal(signal.SIGKILL)
    process.wait()


def stored_ids(path: Path) -> list[str]:
    """Return the ids of the payments in the database at *path*."""
    with sqlite3.connect(path) as database:
        return [payment for (payment,) in database.execute("SELECT id FROM payment")]


if __name__ == "__main__":
    if sys.argv[1:]:
        copy(Path(sys.argv[1]))
    else:
        main()
