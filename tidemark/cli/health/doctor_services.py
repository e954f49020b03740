"""Checks of `doctor` over the network: which services answer at the addresses, and their clock."""

from __future__ import annotations

import email.utils
import http.client
import socket
import time
from typing import NamedTuple
from urllib.parse import urlsplit

from tidemark.cli.health.finding import DoctorFinding, Level
from tidemark.cli.terminal.service_addresses import DEFAULT_QUERY_URL, DEFAULT_WRITER_ADDRESS
from tidemark.client.errors.address_faults import members_of
from tidemark.tls.credentials import TLS_SCHEME, Credentials

TIMEOUT_S = 3.0
_CLOCK_WARN_S = 2.0  # a Date header has whole seconds
_CLOCK_FAIL_S = 60.0


class Heard(NamedTuple):
    """The answer to GET /healthz. status None: no answer, for the reason in problem. is_free: nothing listens there."""

    status: int | None
    date: str | None
    problem: str = ""
    is_free: bool = False


def writer_check(address: str | None) -> DoctorFinding:
    """Check the writer's address: a writer, a free port, or another program."""
    from tidemark.client import Producer
    from tidemark.errors import StoreError

    where = address or DEFAULT_WRITER_ADDRESS
    if is_refused(where):
        return DoctorFinding(Level.OK, "writer", f"{where}: the port is free; start a writer with `tidemark serve`")
    with Producer(address, timeout_s=TIMEOUT_S) as producer:
        try:
            info = producer.log_info()
        except StoreError as error:
            problem = error.message
        else:
            return DoctorFinding(Level.OK, "writer", f"{where} answers: store {info.store_name}, term {info.term}")
    return DoctorFinding(
        Level.FAIL,
        "writer",
        f"{where} does not answer as a writer: {problem}",
        "give another address with --writer, or serve with --writer-port",
    )


def is_refused(address: str) -> bool:
    """Return True if nothing listens at HOST:PORT, or at any of a group's members."""
    return all(map(_is_refused, members_of(address)))


def _is_refused(address: str) -> bool:
    host, _, port = address.removeprefix(TLS_SCHEME).rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), TIMEOUT_S).close()
    except ConnectionRefusedError:
        return True
    except (OSError, ValueError):
        pass
    return False


def ask_health(url: str | None) -> tuple[str, Heard]:
    """Return the requested URL, of a group that of its first member, and its answer."""
    asked = members_of(url or DEFAULT_QUERY_URL)[0]
    parts = urlsplit(asked)
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "https":
        context = Credentials.from_environment().context()
        connection: http.client.HTTPConnection
        connection = http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", f"{parts.path.rstrip('/')}/healthz")
        answer = connection.getresponse()
        return asked, Heard(answer.status, answer.headers["Date"])
    except ConnectionRefusedError as error:
        return asked, Heard(None, None, str(error), is_free=True)
    except (OSError, http.client.HTTPException) as error:
        return asked, Heard(None, None, str(error) or type(error).__name__)
    finally:
        connection.close()


def query_check(url: str, heard: Heard) -> DoctorFinding:
    """Check the query service's URL: a query service, a free port, or another program."""
    if heard.status == http.client.OK:
        return DoctorFinding(Level.OK, "query", f"{url} answers")
    if heard.is_free:
        return DoctorFinding(Level.OK, "query", f"{url}: the port is free; start a query service with `tidemark serve`")
    problem = heard.problem or f"HTTP {heard.status}"
    return DoctorFinding(
        Level.FAIL,
        "query",
        f"{url} does not answer as a query service: {problem}",
        "give another URL with --query, or serve with --query-port",
    )


def clock_check(heard: Heard) -> DoctorFinding:
    """Compare this machine's clock with that of the query service."""
    try:
        there = email.utils.parsedate_to_datetime(heard.date or "").timestamp()
    except ValueError:
        return DoctorFinding(Level.OK, "clock", "not compared: no query service has answered with a time")
    apart = abs(time.time() - there)
    if apart < _CLOCK_WARN_S:
        return DoctorFinding(Level.OK, "clock", "equal to the query service's within two seconds")
    level = Level.FAIL if apart >= _CLOCK_FAIL_S else Level.WARN
    step = "offsets by time and retention use the writer's clock: synchronise both (chrony, systemd-timesyncd)"
    return DoctorFinding(level, "clock", f"{apart:,.0f} s from the query service's clock", step)
