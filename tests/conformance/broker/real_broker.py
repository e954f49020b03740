"""RealBroker: a broker of Apache RocketMQ with small files, and its client. Tests are skipped without Java.

The version is that of the benchmarks, 5.3.3, unless BROKER_VERSION in the environment names another one; the fixture
`broker_version` sets it.

with RealBroker(store, work, settings={"flushDiskType": "SYNC_FLUSH"}) as broker:
    broker.client.create_topic("orders", queues=4)
    broker.client.send("orders", 0, ToSend(b"hello"))
    broker.kill()
    broker.start()
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.peers.broker import BROKER_NAME, Broker
from benchmarks.peers.toolchain import ROCKETMQ, Product, Toolchain, ToolchainMissingError, make_toolchain

from .file_sizes import FileSizes
from .rocket_client import RocketClient

BROKER_VERSION = "CONFORMANCE_BROKER_VERSION"
_CLIENT = Path(__file__).parent / "java" / "RocketClient.java"
_SETTINGS = {
    "brokerClusterName": "conformance",
    # After a kill 5.5.1 dispatches at most ten files of the log again by default. 5.3.3 ignores the setting.
    "commitLogRecoverMaxNum": 1_000_000,
}
_SMALL = ("-Xms256m", "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class RealBroker(Broker):
    """A broker on *store*. Its logs and settings go to *work*; *sizes* and *settings* to its broker.conf."""

    def __init__(
        self,
        store: Path,
        work: Path,
        *,
        sizes: FileSizes | None = None,
        settings: Mapping[str, object] | None = None,
        ports: tuple[int, int, int] | None = None,
    ) -> None:
        self.sizes = sizes or FileSizes()
        super().__init__(
            _require_toolchain(),
            store,
            work,
            settings={**_SETTINGS, **self.sizes.as_broker_settings(), **(settings or {})},
            options=_SMALL,
            ports=ports,
        )
        self._client: RocketClient | None = None

    @property
    def client(self) -> RocketClient:
        """Return RocketMQ's own client; started on first use, it outlives restarts of the broker."""
        if self._client is None:
            self._client = RocketClient(
                self.toolchain,
                self.work,
                name_server=self.name_server_address,
                broker=self.address,
                broker_name=BROKER_NAME,
            )
        return self._client

    def close(self) -> None:
        """End everything; kill a running broker."""
        if self._client is not None:
            self._client.close()
        self._client = None
        super().close()


class RealSlave(Broker):
    """A slave of the master that registers at *name_server*. Other arguments as for `RealBroker`."""

    def __init__(self, store: Path, work: Path, name_server: str, *, sizes: FileSizes) -> None:
        super().__init__(
            _require_toolchain(),
            store,
            work,
            settings={**_SETTINGS, **sizes.as_broker_settings(), "brokerId": 1, "brokerRole": "SLAVE"},
            options=_SMALL,
            name_server=name_server,
        )


def rocketmq() -> Product:
    """Return the product in the version that is tested now."""
    return ROCKETMQ._replace(version=os.environ.get(BROKER_VERSION) or ROCKETMQ.version)


def _require_toolchain() -> Toolchain:
    try:
        return make_toolchain(rocketmq(), [_CLIENT])
    except ToolchainMissingError as error:
        pytest.skip(str(error))
