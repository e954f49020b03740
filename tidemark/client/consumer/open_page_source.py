"""PullSource: settings for a consumer's pulls, from the query service or from a store's files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tidemark.client.consumer.long_poller import Fetcher
from tidemark.client.consumer.page_source import Pulls
from tidemark.client.consumer.remoting_pulls import CONNECT_TIMEOUT_S, PullLimits, RemotingPulls
from tidemark.client.errors.address_faults import members_of
from tidemark.client.received_message import JSON, TopicQueue
from tidemark.client.rest.page import ARROW
from tidemark.client.rest.query import Query
from tidemark.client.wire.frame_socket import FrameSocket
from tidemark.client.wire.wire import Wire, may_use
from tidemark.errors import QueryUnreachableError, StoreError
from tidemark.tls.credentials import Credentials

_LONG_POLL_MS = 15_000
DEFAULT_LIMITS = PullLimits(max_messages=500, max_bytes=1 << 20)
DEFAULT_TABLE_LIMITS = PullLimits(max_messages=8192, max_bytes=4 << 20)  # as much as the service makes without a thread


@dataclass(frozen=True)
class PullSource:
    """Source and limits of pulls.

    store         a directory on this host, read instead of the service at *url*
    tag           one tag or several; None for all messages
    max_messages  limit of a page. None: `DEFAULT_LIMITS`, for tables `DEFAULT_TABLE_LIMITS`
    max_bytes     limit of a page's stored records; None: as for max_messages
    wire          remoting: pull messages in remoting frames if the service offers them; grpc: by HTTP only
    topics        topics to which *tag* applies. Messages of other topics are retries, which have passed the filter
                  before or belong to other members of the group
    """

    url: str
    store: str | Path | None
    tag: str | Sequence[str] | None
    max_messages: int | None
    max_bytes: int | None
    timeout_s: float
    credentials: Credentials | None
    topics: frozenset[str]
    wire: Wire = "remoting"

    def limits(self, accept: str) -> PullLimits:
        """Return the limits of a page in the form *accept*."""
        usual = DEFAULT_TABLE_LIMITS if accept == ARROW else DEFAULT_LIMITS
        return PullLimits(
            usual.max_messages if self.max_messages is None else self.max_messages,
            usual.max_bytes if self.max_bytes is None else self.max_bytes,
        )

    def open(self, accept: str) -> Pulls:
        """Open pulls with answers in the form *accept*."""
        limits = self.limits(accept)
        if self.store is None:
            pulls = self._open_remoting(limits) if accept == JSON and self.wire == "remoting" else None
            if pulls is not None:
                return pulls
            return Fetcher(
                self.url,
                accept=accept,
                parameters={
                    **limits._asdict(),
                    "tag": self.tag,
                    "wait_ms": _LONG_POLL_MS,
                    "body_encoding": "base64",  # cheaper to read than JSON's escapes, and right for any bytes
                },
                timeout_s=self.timeout_s,
                credentials=self.credentials,
                tagged_topics=self.topics,
            )
        from tidemark.client.consumer.file_page_source import FilePulls  # imports numpy and pyarrow

        return FilePulls(
            Path(self.store),
            max_messages=limits.max_messages,
            max_bytes=limits.max_bytes,
            tags=self._tags,
            tagged_topics=self.topics,
        )

    @property
    def _tags(self) -> list[str]:
        return [self.tag] if isinstance(self.tag, str) else list(self.tag or ())

    def _open_remoting(self, limits: PullLimits) -> Pulls | None:
        """Return pulls in remoting frames; None if the service does not offer them, or not at an address in reach."""
        credentials = self.credentials or Credentials.from_environment()
        is_tls = self.url.startswith("https:")
        try:
            address = self._locate()
            connection = FrameSocket.connect(address, credentials, is_tls=is_tls, timeout_s=CONNECT_TIMEOUT_S)
        except (OSError, ValueError, StoreError):
            return None
        return RemotingPulls(
            address,
            is_tls=is_tls,
            credentials=credentials,
            limits=limits,
            tags=self._tags,
            tagged_topics=self.topics,
            connection=connection,
            locate=self._locate if len(members_of(self.url)) > 1 else None,
        )

    def _locate(self) -> str:
        """Return the address at which a service that answers offers remoting frames. Raises StoreError."""
        with Query(self.url, timeout_s=min(self.timeout_s, CONNECT_TIMEOUT_S), credentials=self.credentials) as query:
            address = query.watermark().get("remoting_address")
            if not address or not may_use(address, urlsplit(query.present_url).netloc):
                raise QueryUnreachableError(f"{query.present_url} offers no remoting frames in reach of this machine")
            return address

    def stored_end(self, queue: TopicQueue) -> int:
        """Return the visible end of *queue* in the store's files."""
        return self._stored_bounds(queue)[1]

    def bounds(self, query: Query, queue: TopicQueue) -> tuple[int, int]:
        """Return the minimum and the visible end of *queue*."""
        if self.store is not None:
            return self._stored_bounds(queue)
        answer = query.queue(*queue)
        return int(answer["min_offset"]), int(answer["max_offset"])

    def _stored_bounds(self, queue: TopicQueue) -> tuple[int, int]:
        from tidemark.read.store_reader import StoreReader

        assert self.store is not None
        store = StoreReader(Path(self.store))
        try:
            bounds = store.bounds(store.queue(*queue), store.watermark())
            return bounds.min_offset, bounds.max_offset
        finally:
            store.watermarks.close()
