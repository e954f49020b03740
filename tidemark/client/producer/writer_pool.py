"""Writers: one producer's connections, each created at its writer's first use and kept until the producer closes."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from tidemark.client.producer.topic_routes import Routes
from tidemark.client.producer.writer_addresses import WriterList
from tidemark.client.wire.pending_batches import Pending, PendingLimits
from tidemark.client.wire.wire import Wire
from tidemark.client.wire.writer_connection import WriterLink
from tidemark.errors import ArgumentIllegalError
from tidemark.tls.credentials import Credentials


class Writers:
    """Links to the writers of *listed*. A writer that leaves the list gets no new batches, and answers its old ones."""

    def __init__(
        self,
        listed: WriterList,
        *,
        timeout_s: float,
        limits: PendingLimits,
        credentials: Credentials,
        wire: Wire = "remoting",
    ) -> None:
        self._listed = listed
        self._credentials = credentials
        self._timeout_s = timeout_s
        self._limits = limits
        self._wire = wire
        self._lock = threading.Lock()
        self.by_address: Mapping[str, WriterLink] = {}  # all links, including writers that have left the list
        self._now: tuple[str, ...] = ()
        self.routes = Routes(self.links, timeout_s=timeout_s)
        self.look()

    def look(self) -> None:
        """Update the links from the current list."""
        addresses = self._listed.addresses()
        if addresses is self._now or addresses == self._now:
            return
        with self._lock:
            for address in addresses:
                if address not in self.by_address:
                    link = WriterLink(
                        address,
                        timeout_s=self._timeout_s,
                        limits=self._limits,
                        credentials=self._credentials,
                        wire=self._wire,
                    )
                    self.by_address = {**self.by_address, address: link}
            self._now = addresses
        self.routes.forget_all()

    def links(self) -> list[WriterLink]:
        """Return the links of the current list."""
        return [self.by_address[address] for address in self._now]

    def link(self, address: str) -> WriterLink:
        """Return the link to *address*; raise ArgumentIllegalError if it was never in the list."""
        try:
            return self.by_address[address]
        except KeyError:
            raise ArgumentIllegalError(
                f"{address!r} is not the address of a writer of this producer", argument="queue_id"
            ) from None

    def flush(self, timeout_s: float | None = None) -> bool:
        """Wait until everything submitted is answered or given up, including batches that move between writers."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while not all(link.stream.is_idle for link in self.by_address.values()):
            for link in self.by_address.values():
                if not link.stream.flush(None if end is None else max(0.0, end - time.monotonic())):
                    return False
        return True

    def unanswered(self) -> list[Pending]:
        """Return the submitted and unanswered batches of all writers."""
        return [pending for link in self.by_address.values() for pending in link.stream.unanswered()]

    def close(self, deadline: float) -> None:
        """Wait for answers until *deadline*, including moving batches, and close all connections."""
        self.flush(max(0.0, deadline - time.monotonic()))
        for link in self.by_address.values():
            link.close(deadline)
