"""Group of three: three processes share a topic's queues; one is killed, and the others take over its queues.

Messages that the killed process handled but did not commit are delivered again: at least once, never lost.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable

from tidemark.client import Consumer, Producer

TOPIC, GROUP = "jobs", "workers"
QUEUES = 6
DEADLINE_S = 90


def work() -> None:
    """Handle jobs as a member of the group until killed, and print each job."""
    with Consumer(TOPIC, group=GROUP, session_timeout_s=3, auto_commit_interval_s=0.5) as consumer:
        for message in consumer:
            time.sleep(0.001)  # the work
            print(message.text(), flush=True)


class Member:
    """A member process, and the jobs that it has handled."""

    def __init__(self) -> None:
        self.handled: list[str] = []
        self._process = subprocess.Popen([sys.executable, __file__, "work"], stdout=subprocess.PIPE, text=True)
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.handled.append(line.strip())

    def kill(self) -> None:
        """Kill the process as `kill -9` does, so that it cannot commit."""
        self._process.kill()
        self._process.wait()
        self._listener.join()


def main() -> None:
    """Send jobs, kill a member, and count the jobs that the members handled."""
    jobs: list[str] = []
    members: list[Member] = []
    with Producer() as producer:
        producer.topics.create(TOPIC, queues=QUEUES)
        try:
            members += [Member() for _ in range(3)]
            wait_for(lambda: all(member.handled for member in members), meanwhile=lambda: send_some(producer, jobs))
            members[0].kill()
            print(f"one member killed after {len(members[0].handled)} jobs")
            for _ in range(5):
                send_some(producer, jobs)
            wait_for(lambda: set(jobs) <= set(all_handled(members)))
        finally:
            for member in members:
                member.kill()
    times = Counter(all_handled(members))
    print("jobs by member:", *(len(member.handled) for member in members))
    print(f"all {len(jobs)} jobs handled, {sum(times[job] > 1 for job in jobs)} of them twice")


def send_some(producer: Producer, jobs: list[str]) -> None:
    """Send a hundred more jobs to all queues and add them to *jobs*."""
    new = [uuid.uuid4().hex for _ in range(100)]
    for future in [producer.send_async(TOPIC, job, key=job) for job in new]:
        future.result()
    jobs += new


def all_handled(members: list[Member]) -> list[str]:
    """Return the jobs that all members have handled."""
    return [job for member in members for job in member.handled]


def wait_for(is_so: Callable[[], bool], *, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Block until *is_so* returns True, calling *meanwhile* in between. Raises TimeoutError after DEADLINE_S."""
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the members did not handle the jobs within {DEADLINE_S} s")
        meanwhile()
        time.sleep(0.2)


if __name__ == "__main__":
    work() if sys.argv[1:] else main()
