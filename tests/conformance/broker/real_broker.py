"""RealBroker: a name server and a broker of Apache RocketMQ 5.3.3 on loopback, and their client.

    with RealBroker(store, work, settings={"flushDiskType": "SYNC_FLUSH"}) as broker:
        broker.client.create_topic("orders", queues=4)
        broker.client.send("orders", 0, ToSend(b"hello"))
        broker.kill()
        broker.start()

Several may run on one machine at once: each has ports of its own, and keeps them over restarts of the broker, because
its address is part of every record it writes.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from .file_sizes import FileSizes
from .rocket_client import RocketClient
from .toolchain import Toolchain, require_toolchain

BROKER_NAME = "broker-a"
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 120.0
_POLL_S = 0.05
_FIRST_PORT, _LAST_PORT = 10_000, 32_000  # below what the kernel gives to outgoing connections
_SMALL = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_OPENED = tuple(  # the broker unmaps its files by reflection
    f"--add-{what}=ALL-UNNAMED"
    for what in (
        "opens=java.base/java.nio",
        "opens=java.base/java.lang",
        "opens=java.base/sun.nio.ch",
        "exports=java.base/sun.nio.ch",
        "exports=java.base/jdk.internal.ref",
    )
)
_SETTINGS: dict[str, object] = {  # a slow machine must not make it refuse, nor a full disk make it delete
    "brokerClusterName": "conformance",
    "brokerName": BROKER_NAME,
    "brokerId": 0,
    "brokerIP1": "127.0.0.1",
    "brokerRole": "ASYNC_MASTER",
    "autoCreateTopicEnable": "false",
    "timerWheelEnable": "false",
    "waitTimeMillsInSendQueue": 60_000,
    "osPageCacheBusyTimeOutMills": 60_000,
    "syncFlushTimeout": 60_000,
    "fileReservedTime": 100_000,
    "cleanFileForciblyEnable": "false",
}


class RealBroker:
    """A broker on *store*. Its logs and settings go to *work*; *sizes* and *settings* to its broker.conf.

    settings of a restart: `start(settings=…)`. ports: (name server, broker, high availability); None: free ones.
    """

    def __init__(
        self,
        store: Path,
        work: Path,
        *,
        sizes: FileSizes | None = None,
        settings: Mapping[str, object] | None = None,
        ports: tuple[int, int, int] | None = None,
    ) -> None:
        self._toolchain: Toolchain = require_toolchain()
        self.store = store.absolute()
        self.sizes = sizes or FileSizes()
        self._settings = dict(settings or {})
        self._work = work.absolute()
        self.ports = ports or free_ports()
        self._name_port, self._port, self._ha_port = self.ports
        self._name_server: subprocess.Popen[bytes] | None = None
        self._broker: subprocess.Popen[bytes] | None = None
        self._client: RocketClient | None = None

    @property
    def address(self) -> str:
        """host:port, as it stands in the records it writes."""
        return f"127.0.0.1:{self._port}"

    @property
    def name_server_address(self) -> str:
        """What a client dials first."""
        return f"127.0.0.1:{self._name_port}"

    @property
    def pid(self) -> int:
        """The broker's process id."""
        assert self._broker is not None
        return self._broker.pid

    @property
    def client(self) -> RocketClient:
        """RocketMQ's own client; started when it is first needed, it outlives restarts of the broker."""
        if self._client is None:
            self._client = RocketClient(
                self._toolchain,
                self._work,
                name_server=self.name_server_address,
                broker=self.address,
                broker_name=BROKER_NAME,
            )
        return self._client

    def start(self, *, settings: Mapping[str, object] | None = None) -> Self:
        """Start it, the name server first; returns when it serves. AssertionError with its output when it does not."""
        assert self._broker is None, "it runs"
        (self._work / "conf").mkdir(parents=True, exist_ok=True)
        self.store.mkdir(parents=True, exist_ok=True)
        if self._name_server is None:
            conf = self._write_conf("name-server", {"listenPort": self._name_port})
            main_class = "org.apache.rocketmq.namesrv.NamesrvStartup"
            self._name_server = self._run("name-server", main_class, conf, ("-Xmx128m", *_SMALL))
        self._settings.update(settings or {})
        conf = self._write_conf("broker", {**_SETTINGS, **self._places(), **self._settings})
        main_class = "org.apache.rocketmq.broker.BrokerStartup"
        self._broker = self._run("broker", main_class, conf, ("-Xms256m", "-Xmx1g", *_SMALL, *_OPENED))
        return self

    def _places(self) -> dict[str, object]:
        return {
            "namesrvAddr": self.name_server_address,
            "listenPort": self._port,
            "haListenPort": self._ha_port,
            "storePathRootDir": self.store,
            "storePathCommitLog": self.store / "commitlog",
            **self.sizes.as_broker_settings(),
        }

    def _write_conf(self, name: str, settings: Mapping[str, object]) -> Path:
        path = self._work / f"{name}.conf"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return path

    def _run(self, name: str, main_class: str, conf: Path, options: tuple[str, ...]) -> subprocess.Popen[bytes]:
        """Start one of RocketMQ's programs and wait until it says that it is up."""
        output = self._work / f"{name}.out"
        command = self._toolchain.java(main_class, "-c", str(conf), options=(*options, f"-Duser.home={self._work}"))
        with output.open("wb") as file:
            process = subprocess.Popen(
                command, stdout=file, stderr=subprocess.STDOUT, env={**os.environ, "ROCKETMQ_HOME": str(self._work)}
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while b"boot success" not in output.read_bytes():
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                process.wait()
                raise AssertionError(f"the {name} did not start: {output.read_text(errors='replace')[-4000:]}")
            time.sleep(_POLL_S)
        return process

    def stop(self) -> None:
        """SIGTERM, and wait: a clean shutdown."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        assert self._broker is not None, "it does not run"
        broker, self._broker = self._broker, None
        broker.send_signal(number)
        try:
            broker.wait(STOP_TIMEOUT_S)
        finally:
            broker.kill()

    def close(self) -> None:
        """End everything; a broker that runs still is killed."""
        if self._client is not None:
            self._client.close()
        for process in (self._broker, self._name_server):
            if process is not None:
                process.kill()
                process.wait()
        self._broker = self._name_server = self._client = None

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()


def free_ports() -> tuple[int, int, int]:
    """Ports of a name server, a broker (which takes the one two below, too) and its high availability service."""
    chooser = random.SystemRandom()
    while True:
        first = chooser.randrange(_FIRST_PORT, _LAST_PORT)
        if all(_is_free(port) for port in range(first, first + 5)):
            return first, first + 3, first + 4


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
