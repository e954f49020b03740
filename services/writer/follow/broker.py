"""Questions of a slave to name server and broker: addresses, sizes, the bounds of the log, tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tidemark.errors import BrokerUnreachableError, StoreContradictionError
from tidemark.remoting.codes import SlaveCode
from tidemark.store.originals.topics import loads_lenient

from ..follow_settings import BrokerUrl
from .broker_calls import BrokerCalls

_MASTER_ID = "0"
_OTHER_LOGS = {  # settings of brokers whose log is copied by another protocol
    "enableDLegerCommitLog": "a DLedger log",
    "enableControllerMode": "a controller",
}


class Broker(NamedTuple):
    """A running master. ha_addresses: where it sends its log, to be tried in this order."""

    name: str
    address: str
    ha_addresses: tuple[str, ...]
    log_file_bytes: int


class LogBounds(NamedTuple):
    """Physical offsets of a log. end: exclusive."""

    begin: int
    end: int


async def find_broker(url: BrokerUrl, calls: BrokerCalls) -> Broker:
    """Return the broker at *url*.

    Raises:
        BrokerUnreachableError: no name server answers or knows it, or the broker does not answer.
        StoreContradictionError: its log cannot be followed.
    """
    address = await _master_address(url, calls)
    settings = _properties(bytes((await calls.ask(address, SlaveCode.GET_BROKER_CONFIG)).body))
    for name, log in _OTHER_LOGS.items():
        if settings.get(name) == "true":
            raise StoreContradictionError(
                f"broker {url.broker} has {log} ({name}=true), whose replication protocol is not supported: follow a "
                "broker without it, or attach to its store (tidemark serve --attach)",
                setting="follow",
            )
    try:
        port, size = int(settings["haListenPort"]), int(settings["mappedFileSizeCommitLog"])
    except (KeyError, ValueError) as error:
        raise BrokerUnreachableError(
            f"the settings of the broker at {address} have no {error}", address=address
        ) from error
    host = address.rpartition(":")[0]
    hosts = dict.fromkeys((settings.get("brokerIP2") or host, host))
    return Broker(url.broker, address, tuple(f"{one}:{port}" for one in hosts), size)


async def _master_address(url: BrokerUrl, calls: BrokerCalls) -> str:
    """Return the address of the master of the broker's name, from the first name server that answers."""
    for number, name_server in enumerate(url.name_servers, 1):
        try:
            answer = await calls.ask(name_server, SlaveCode.GET_BROKER_CLUSTER_INFO)
        except BrokerUnreachableError:
            if number == len(url.name_servers):
                raise
            continue
        known = _json(answer.body, name_server).get("brokerAddrTable") or {}
        address = ((known.get(url.broker) or {}).get("brokerAddrs") or {}).get(_MASTER_ID)
        if address:
            return str(address)
        raise BrokerUnreachableError(
            f"the name server {name_server} knows no master of broker {url.broker}; it knows the brokers "
            f"{', '.join(sorted(known)) or 'none'}",
            address=name_server,
        )
    raise AssertionError("there is a name server")


async def log_bounds(calls: BrokerCalls, broker: Broker) -> LogBounds:
    """Return the bounds of the broker's log. Raises BrokerUnreachableError."""
    answer = await calls.ask(broker.address, SlaveCode.GET_BROKER_RUNTIME_INFO)
    table = _json(answer.body, broker.address).get("table") or {}
    try:
        return LogBounds(int(table["commitLogMinOffset"]), int(table["commitLogMaxOffset"]))
    except (KeyError, ValueError) as error:
        raise BrokerUnreachableError(
            f"the state of the broker at {broker.address} has no {error}", address=broker.address
        ) from error


async def fetch_table(calls: BrokerCalls, broker: Broker, code: SlaveCode) -> Mapping[str, Any]:
    """Return one of the broker's tables, as in its file of the folder config. Raises BrokerUnreachableError."""
    return _json((await calls.ask(broker.address, code)).body, broker.address)


def _json(body: bytes | bytearray | memoryview, address: str) -> Mapping[str, Any]:
    try:
        content = loads_lenient(bytes(body) or b"{}")
    except ValueError as error:
        raise BrokerUnreachableError(f"{address} answers with illegal JSON: {error}", address=address) from error
    if not isinstance(content, dict):
        raise BrokerUnreachableError(f"{address} answers with JSON that is no object", address=address)
    return content


def _properties(body: bytes) -> Mapping[str, str]:
    """Parse lines of name=value."""
    lines = (line.partition("=") for line in body.decode("utf-8", "replace").splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}
