"""LocalStack: writer, pipeline and query of one store as child processes.

`tidemark serve` adds a screen to this class. The demo, the benchmarks and tests use it directly:

    with LocalStack(Path("data")) as stack:
        print(stack.query_url)
"""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

from tidemark.errors import StoreClosedError, StoreContradictionError, UnavailableError
from tidemark.local.child_service import Service
from tidemark.local.java import require_java
from tidemark.local.service_packages import require_service_packages
from tidemark.settings.engine import Engine
from tidemark.settings.registry import service_module
from tidemark.store.log_folders import LogFolders
from tidemark.store.paths import StorePaths
from tidemark.tls.credentials import TLS_SCHEME, Credentials

WRITER, PIPELINE, QUERY, ATTACH = "writer", "pipeline", "query", "attach"
START_ORDER = (WRITER, PIPELINE, QUERY)
ATTACHED_ORDER = (ATTACH, QUERY)
START_TIMEOUT_S = 600.0  # per service: the first start compiles loops, which takes minutes on a busy machine
REPORT_S = 5.0
STOP_TIMEOUT_S = 30.0  # per service
_POLL_S = 0.05
_CHECK_POLL_S = 0.1  # for a check that starts a process

# A laptop's sizes instead of RocketMQ's, for kinds of files that the store does not have yet; others keep theirs.
NEW_LOG_SIZES = {"TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES": str(64 << 20)}
NEW_INDEX_SIZES = {"TIDEMARK_INDEX_SLOTS": str(50_000), "TIDEMARK_INDEX_ENTRIES": str(200_000)}
# Metrics are off unless the environment gives an address, because several stacks may run on one machine.
NO_METRICS = {"TIDEMARK_WRITER_METRICS_LISTEN": "", "TIDEMARK_PIPELINE_METRICS_LISTEN": ""}
PIPELINE_HEALTHCHECK = "indexer.healthcheck"
OnWait = Callable[[str, float], None]
_MODULES = {
    WRITER: ("writer",),
    PIPELINE: ("indexer", "pipeline"),
    QUERY: ("indexer", "query"),
    ATTACH: ("indexer", "attach"),
}


class ServiceDiedError(UnavailableError):
    """A service ended by itself. Facts: name, exit_status, log_path. *last_lines*: the last lines of its log."""

    def __init__(self, service: Service) -> None:
        status = service.exit_status
        super().__init__(
            f"{service.name} ended by itself with exit status {status}",
            name=service.name,
            exit_status=status,
            log_path=str(service.log_path),
        )
        self.last_lines = service.last_lines()


def free_port() -> int:
    """Return a port of 127.0.0.1 that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def require_free_port(port: int, what: str) -> None:
    """Raise StoreContradictionError (facts: setting, port) if *port* of 127.0.0.1 cannot be bound."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise StoreContradictionError(
                f"port {port}, for the {what}, cannot be used: {error.strerror}", setting=f"{what} port", port=port
            ) from error


class LocalStack:
    """The services of one store on this machine; with TLS if TIDEMARK_TLS_CERT is in their environment.

    data         root of the store; logs go to data/logs/<service>.log, which each start truncates
    state        attach: data is a broker's store, in which nothing is written; Tidemark's files and logs go to state
    writer_port  None: a free port; the same for the other ports
    writer_remoting_port, query_remoting_port  0: RocketMQ's clients are not served
    environment  further TIDEMARK_ settings, which override those of a new store
    services     the services to start, out of START_ORDER
    stopping     set it from any thread to end a waiting start

    start_timeout_s  time for each service to become healthy; passed to the pipeline as TIDEMARK_START_TIMEOUT_S
    small_new_files  use a laptop's sizes for new files, unless the environment sets them; otherwise RocketMQ's sizes
    """

    def __init__(
        self,
        data: Path,
        *,
        state: Path | None = None,
        writer_port: int | None = None,
        query_port: int | None = None,
        writer_remoting_port: int | None = None,
        query_remoting_port: int | None = None,
        environment: Mapping[str, str] | None = None,
        services: tuple[str, ...] | None = None,
        small_new_files: bool = True,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        self.data = data
        self.state = state
        self.writer_port = writer_port or free_port()
        self.query_port = query_port or free_port()
        self._writer_remoting_port = free_port() if writer_remoting_port is None else writer_remoting_port
        self._query_remoting_port = free_port() if query_remoting_port is None else query_remoting_port
        self.services: dict[str, Service] = {}
        self.stopping = threading.Event()
        self._wanted = services or (START_ORDER if state is None else ATTACHED_ORDER)
        self._environment = dict(environment or {})
        self._small_new_files = small_new_files
        self.start_timeout_s = start_timeout_s
        self._on_wait: OnWait = lambda *_: None

    @property
    def writer_listen(self) -> str:
        """Return the address that the writer binds."""
        return f"127.0.0.1:{self.writer_port}"

    @property
    def writer_address(self) -> str:
        """Return the writer's address for a Producer."""
        return f"{TLS_SCHEME}{self.writer_listen}" if self._is_tls else self.writer_listen

    @property
    def query_url(self) -> str:
        """Return the URL of the REST API."""
        return f"{'https' if self._is_tls else 'http'}://127.0.0.1:{self.query_port}"

    @property
    def writer_remoting_address(self) -> str:
        """Return the address to which RocketMQ's clients send, and their name server; empty: off."""
        return self._remoting_address(self._writer_remoting_port)

    @property
    def query_remoting_address(self) -> str:
        """Return the address from which RocketMQ's clients read, and their name server; empty: off."""
        return self._remoting_address(self._query_remoting_port)

    def _remoting_address(self, port: int) -> str:
        return f"127.0.0.1:{port}" if port and self.state is None else ""

    @property
    def runs_spark(self) -> bool:
        """True if the pipeline starts Spark."""
        return PIPELINE in self._wanted and self._given("TIDEMARK_PIPELINE") != Engine.PLAIN

    @property
    def followed(self) -> str:
        """The RocketMQ broker that the store follows, as in TIDEMARK_FOLLOW; empty: none."""
        return self._given("TIDEMARK_FOLLOW") or ""

    @property
    def _is_tls(self) -> bool:
        return self._given("TIDEMARK_TLS_CERT") is not None

    def _given(self, name: str) -> str | None:
        """Return a setting of the services' environment."""
        return self._environment.get(name, os.environ.get(name)) or None

    @property
    def logs(self) -> Path:
        """Return the folder of the services' logs."""
        return (self.state or self.data) / "logs"

    def start(self, *, on_step: Callable[[str], None] = lambda _: None, on_wait: OnWait = lambda *_: None) -> None:
        """Start all services and wait until each is healthy. After an error, none of them is running.

        Args:
            on_step: called with the name of each service before its start.
            on_wait: called every REPORT_S with the name of the service that is not healthy yet, and the seconds so far.

        Raises:
            StoreContradictionError: a port is in use, or packages or a suitable Java are not installed; nothing was
                started.
            ServiceDiedError: a service ended by itself.
            StoreClosedError: `stopping` was set.
            UnavailableError: a service is not healthy within `start_timeout_s`.
        """
        for name, port, what in self._ports():
            if name in self._wanted:
                require_free_port(port, what)
        require_service_packages(query=QUERY in self._wanted, spark=self.runs_spark)
        if self.runs_spark:
            require_java()
        self._on_wait = on_wait
        self.logs.mkdir(parents=True, exist_ok=True)
        environment = self._settings()
        try:
            for name in self._wanted:  # all at once, because each of them waits until it can read what it needs
                on_step(name)
                self._start_process(name, environment)
            for name in self._wanted:
                self._wait_until_healthy(name, environment)
        except BaseException:
            self.stop()
            raise

    def _ports(self) -> list[tuple[str, int, str]]:
        """Return service, port, and the port's name in errors."""
        ports = [(WRITER, self.writer_port, "writer"), (QUERY, self.query_port, "query")]
        if self.writer_remoting_address:
            ports.append((WRITER, self._writer_remoting_port, "writer's remoting"))
        if self.query_remoting_address:
            ports.append((QUERY, self._query_remoting_port, "query service's remoting"))
        return ports

    def start_service(self, name: str, environment: Mapping[str, str] | None = None) -> Service:
        """Start one service, for the first time or again; writer and query accept requests when this returns."""
        settings = self._settings() if environment is None else environment
        service = self._start_process(name, settings)
        if name in (WRITER, QUERY):
            self._wait_until_healthy(name, settings)
        return service

    def _start_process(self, name: str, environment: Mapping[str, str]) -> Service:
        module, *arguments = _MODULES[name]
        service = self.services[name] = Service(
            name, [service_module(module), *arguments], environment, self.logs / f"{name}.log"
        )
        return service

    def _wait_until_healthy(self, name: str, environment: Mapping[str, str]) -> None:
        if name == WRITER:
            ports = [port for service, port, _ in self._ports() if service == WRITER]
            if (self._given("TIDEMARK_REPLICATION") or "off") != "off" or self.followed:
                ports = [self.writer_port]  # a replica or follower does not serve RocketMQ's producers
            self._wait_for(WRITER, lambda: all(map(_listens, ports)))
        elif name == QUERY:
            path = "readyz" if ATTACH in self._wanted else "healthz"
            context = self._asking_context()
            self._wait_for(QUERY, lambda: _answers(f"{self.query_url}/{path}", context))
        elif name == PIPELINE:
            self._wait_for(PIPELINE, lambda: _is_healthy(PIPELINE_HEALTHCHECK, environment), poll_s=_CHECK_POLL_S)

    def _settings(self) -> dict[str, str]:
        if self.state is not None:
            return {
                **self._environment,
                "TIDEMARK_STORE_ROOT": str(self.data.absolute()),
                "TIDEMARK_STATE_ROOT": str(self.state.absolute()),
                **self._query_settings(),
            }
        paths = StorePaths(self.data)
        log_folders = LogFolders.parse(
            self.data,
            self._environment.get("TIDEMARK_COMMIT_LOG_PATHS", ""),
            self._environment.get("TIDEMARK_COMMIT_LOG_READ_ONLY_PATHS", ""),
        )
        usual = {**NO_METRICS, "TIDEMARK_START_TIMEOUT_S": f"{self.start_timeout_s:g}"}
        if self._small_new_files:
            usual |= {} if any(map(_has_files, log_folders.all)) else NEW_LOG_SIZES
            usual |= {} if _has_files(paths.index) else NEW_INDEX_SIZES
        return {
            **{name: value for name, value in usual.items() if name not in os.environ},
            **self._environment,
            "TIDEMARK_STORE_ROOT": str(self.data.absolute()),
            "TIDEMARK_WRITER_LISTEN": self.writer_listen,
            "TIDEMARK_WRITER_ADDRESS": self.writer_address,
            "TIDEMARK_WRITER_REMOTING_LISTEN": self.writer_remoting_address,
            "TIDEMARK_QUERY_REMOTING_LISTEN": self.query_remoting_address,
            **self._query_settings(),
        }

    def _query_settings(self) -> dict[str, str]:
        return {"TIDEMARK_QUERY_LISTEN": f"127.0.0.1:{self.query_port}", "TIDEMARK_QUERY_URL": self.query_url}

    def _asking_context(self) -> ssl.SSLContext | None:
        """Return the TLS context for requests to the query service, which may require its own certificate."""
        if not self._is_tls:
            return None
        cert, key = self._given("TIDEMARK_TLS_CERT"), self._given("TIDEMARK_TLS_KEY")
        return Credentials(cert=cert, key=key).context(trusts_all=True)

    def _wait_for(self, name: str, is_healthy: Callable[[], bool], *, poll_s: float = _POLL_S) -> None:
        began = reported = time.monotonic()
        while True:
            self.check()
            if is_healthy():
                return
            if self.stopping.is_set():
                raise StoreClosedError(f"stopped before {name} was healthy")
            now = time.monotonic()
            if now - began > self.start_timeout_s:
                raise UnavailableError(
                    f"{name} is not healthy after {self.start_timeout_s:.0f} s, the limit of --start-timeout "
                    f"(TIDEMARK_START_TIMEOUT_S); see {self.logs / name}.log"
                )
            if now - reported >= REPORT_S:
                reported = now
                self._on_wait(name, now - began)
            time.sleep(poll_s)

    def spark_follows(self) -> bool:
        """Return True if Spark has taken over from the understudy since the pipeline's start, by the pipeline's log."""
        return b'"event": "spark_follows"' in (self.logs / f"{PIPELINE}.log").read_bytes()

    def wait_for_spark(self) -> None:
        """Wait until Spark has taken over from the understudy. No-op without Spark. Raises as `start` does."""
        if self.runs_spark:
            self._wait_for(PIPELINE, self.spark_follows, poll_s=_CHECK_POLL_S)

    def check(self) -> None:
        """Raise ServiceDiedError if a service has ended by itself."""
        for service in self.services.values():
            if service.exit_status is not None:
                raise ServiceDiedError(service)

    def stop(self) -> dict[str, int]:
        """Stop query, pipeline and writer in turn; return their exit statuses by name."""
        names = [name for name in reversed((*START_ORDER[:-1], *ATTACHED_ORDER)) if name in self.services]
        return {name: self.services.pop(name).stop(STOP_TIMEOUT_S) for name in names}

    def __enter__(self) -> LocalStack:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _has_files(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _is_healthy(healthcheck: str, environment: Mapping[str, str]) -> bool:
    """Return True if the service's own healthcheck succeeds; containers run the same one."""
    command = [sys.executable, "-m", service_module(healthcheck)]
    done = subprocess.run(  # noqa: S603 - our own module
        command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return done.returncode == 0


def _answers(url: str, context: ssl.SSLContext | None) -> bool:
    try:
        opener = urllib.request.build_opener(  # without the environment's proxy: the service is on this machine
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        with opener.open(url, timeout=5) as response:
            return bool(response.status == 200)
    except OSError:  # refused, reset, or an error status
        return False
