"""Broker: a name server and a broker of Apache RocketMQ on loopback.

Several may run on one machine concurrently. Each has its own ports and keeps them over restarts of the broker, because
the address is part of every record that it writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from benchmarks.peers.ports import free_run
from benchmarks.peers.server import Running, Server
from benchmarks.peers.toolchain import Toolchain

BROKER_NAME = "broker-a"
_NAME_SERVER_OPTIONS = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
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
_SETTINGS: dict[str, object] = {  # no rejections on a slow machine, and no deletions on a full disk
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


class Broker(Running):
    """A broker on *store*. Its logs and settings are in *work*.

    settings: for its broker.conf; a restart changes them with `start(settings=…)`. options: of its JVM.
    ports: (name server, broker, high availability); None: free ports. name_server: host:port of one that runs already,
    that of a slave's master; empty: its own
    """

    def __init__(
        self,
        toolchain: Toolchain,
        store: Path,
        work: Path,
        *,
        settings: Mapping[str, object],
        options: Sequence[str],
        ports: tuple[int, int, int] | None = None,
        name_server: str = "",
    ) -> None:
        self.toolchain = toolchain
        self.store = store.absolute()
        self.work = work.absolute()
        self._settings = dict(settings)
        self._options = options
        self.ports = ports or free_ports()
        self._name_port, self._port, self._ha_port = self.ports
        self._other_name_server = name_server
        self._name_server: Server | None = None
        self._broker: Server | None = None

    @property
    def address(self) -> str:
        """host:port, as in the records that it writes."""
        return f"127.0.0.1:{self._port}"

    @property
    def name_server_address(self) -> str:
        """host:port of the name server, to which clients connect first."""
        return self._other_name_server or f"127.0.0.1:{self._name_port}"

    @property
    def server(self) -> Server:
        """The broker's process."""
        assert self._broker is not None, "it does not run"
        return self._broker

    def start(self, *, settings: Mapping[str, object] | None = None) -> Self:
        """Start the name server and the broker, and return when they serve. Raises AssertionError with their output."""
        assert self._broker is None, "it runs"
        (self.work / "conf").mkdir(parents=True, exist_ok=True)
        self.store.mkdir(parents=True, exist_ok=True)
        if self._name_server is None and not self._other_name_server:
            conf = self._write_conf("name-server", {"listenPort": self._name_port})
            main_class = "org.apache.rocketmq.namesrv.NamesrvStartup"
            self._name_server = self._run("name-server", main_class, conf, _NAME_SERVER_OPTIONS)
        self._settings.update(settings or {})
        conf = self._write_conf("broker", {**_SETTINGS, **self._places(), **self._settings})
        main_class = "org.apache.rocketmq.broker.BrokerStartup"
        self._broker = self._run("broker", main_class, conf, (*self._options, *_OPENED))
        return self

    def _places(self) -> dict[str, object]:
        return {
            "namesrvAddr": self.name_server_address,
            "listenPort": self._port,
            "haListenPort": self._ha_port,
            "storePathRootDir": self.store,
            "storePathCommitLog": self.store / "commitlog",
        }

    def _write_conf(self, name: str, settings: Mapping[str, object]) -> Path:
        path = self.work / f"{name}.conf"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return path

    def _run(self, name: str, main_class: str, conf: Path, options: Sequence[str]) -> Server:
        """Start one of RocketMQ's programs and wait until it reports that it is ready."""
        command = self.toolchain.java(main_class, "-c", str(conf), options=(*options, f"-Duser.home={self.work}"))
        server = Server(command, self.work / f"{name}.out", {"ROCKETMQ_HOME": str(self.work)})
        server.wait_until(lambda: server.says(b"boot success"))
        return server

    def stop(self) -> None:
        """Stop the broker with SIGTERM, a clean shutdown, and wait for its end."""
        server, self._broker = self.server, None
        server.stop()

    def kill(self) -> None:
        """Kill the broker with SIGKILL."""
        server, self._broker = self.server, None
        server.kill()

    def close(self) -> None:
        """End both programs; a broker that still runs is killed."""
        for server in (self._broker, self._name_server):
            if server is not None:
                server.kill()
        self._broker = self._name_server = None


def free_ports() -> tuple[int, int, int]:
    """Return free ports of a name server, a broker (which also uses its port - 2) and its high availability service."""
    first = free_run(5)
    return first, first + 3, first + 4
