"""RetryWriters: the producers that store a consumer's failed messages, each in the store that it was read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from tidemark.client.consumer.retry_later import RetryLater
from tidemark.client.errors.address_faults import stores_of
from tidemark.client.producer.producer import Producer
from tidemark.client.received_message import ReceivedMessage
from tidemark.client.wire.channel import default_address
from tidemark.errors import ArgumentIllegalError
from tidemark.tls.credentials import Credentials


class RetryWriters:
    """Producers for *stores*, as in `ReceivedMessage.store`.

    writers  addresses of their writers, in the same order and separated by commas; default: TIDEMARK_WRITER_ADDRESS

    Raises ArgumentIllegalError unless there is one for each store.
    """

    def __init__(self, stores: Sequence[str], writers: str | None, *, credentials: Credentials | None) -> None:
        addresses: Sequence[str | None] = [writers]
        if len(stores) > 1:
            addresses = stores_of(default_address() if writers is None else writers)
        if len(addresses) != len(stores):
            raise ArgumentIllegalError(
                f"writer has {len(addresses)} addresses for {len(stores)} stores: give one for each, in the order of "
                "url, separated by commas (TIDEMARK_WRITER_ADDRESS)",
                argument="writer",
            )
        self._producers = {
            store: Producer(address, credentials=credentials) for store, address in zip(stores, addresses, strict=True)
        }

    def send_back(self, group: str, *, max_attempts: int, first_delay_level: int) -> SendBack:
        """Return what stores the failed messages of *group*; arguments as for `RetryLater`."""
        return SendBack(
            {
                store: RetryLater(producer, group, max_attempts=max_attempts, first_delay_level=first_delay_level)
                for store, producer in self._producers.items()
            }
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for producer in self._producers.values():
            producer.close()


class SendBack:
    """Stores failed messages in their own stores. The methods are those of `RetryLater`."""

    def __init__(self, stores: Mapping[str, RetryLater]) -> None:
        self._stores = stores

    def send(self, message: ReceivedMessage) -> None:
        self._stores[message.store].send(message)

    def bury(self, message: ReceivedMessage, reason: str) -> None:
        self._stores[message.store].bury(message, reason)

    def forward(self, message: ReceivedMessage) -> None:
        self._stores[message.store].forward(message)
