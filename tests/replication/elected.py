"""Members of a group that elects its writer."""

from __future__ import annotations

from tests.replication.members import Members
from tests.waiting import until
from tidemark.client import SendStatus

TOPIC = "orders"


class Elected(Members):
    """Members of a group that elects its writer."""

    def writer(self, *others: str) -> str | None:
        """Return the member, other than *others*, that says that it is the writer; None if there is none."""
        described = [self.described(name) for name in self.ports if name in self.running and name not in others]
        writers = [one for one in described if one is not None and one.role == "writer"]
        return max(writers, key=lambda one: one.epoch or 0).name if writers else None

    def until_writer(self, *others: str) -> str:
        """Wait until a member other than *others* is the writer."""
        return until(lambda: self.writer(*others), f"a writer other than {others}", found=self.found)

    def until_all_in_sync(self) -> str:
        """Wait until all members are in sync and have everything, and return the writer, whichever it is by then."""

        def writer() -> str | None:
            name = self.writer()
            return name if name and self.are_in_sync(name, len(self.ports)) else None

        return until(writer, "all members are in sync", found=self.found)

    def acknowledge(self, name: str, body: bytes = b"one more") -> None:
        with self.producer(name) as producer:
            assert producer.send(TOPIC, body).status is SendStatus.PUT_OK
