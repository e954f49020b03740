"""Checks of a writer's address: its form, and whether a writer answers there."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence

from tidemark.errors import ArgumentIllegalError, DeadlineExceededError, StoreError, WriterUnreachableError
from tidemark.tls.credentials import TLS_SCHEME, Credentials

STORE_SEPARATOR = ","  # between stores
SEPARATOR = "|"  # between the members of a group
PATIENCE_S = 0.7  # a running writer has usually answered by then; after that, check the address
LOOK_S = 1.0  # longest time of a look at an address
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))  # HTTP/2 preface, empty SETTINGS
_FRAME_HEAD, _SETTINGS = 9, 4  # bytes of a frame's head; the type of the frame that an HTTP/2 server sends first
_TLS_ALERT = 0x15  # the first byte of a TLS server's answer to plain bytes
_UNREACHED = (DeadlineExceededError, WriterUnreachableError)
_REMEDY = "a writer's address is host:port, as in 127.0.0.1:8081 (TIDEMARK_WRITER_ADDRESS)"


def require_writer_address(address: str, argument: str = "writers") -> str:
    """Return *address* if it is host:port or tls://host:port; otherwise raise ArgumentIllegalError with the reason."""
    scheme, separator, _ = address.partition("://")
    if separator and f"{scheme}://" != TLS_SCHEME:
        raise ArgumentIllegalError(
            f"the writer's address {address!r} has the scheme {scheme}://, but writers use gRPC: write host:port, or "
            "tls://host:port; the http address of the query service is TIDEMARK_QUERY_URL",
            argument=argument,
        )
    host, colon, port = address.removeprefix(TLS_SCHEME).rpartition(":")
    is_port = port.isascii() and port.isdecimal() and 1 <= int(port) <= 65_535
    if not colon or not host or not is_port or any(character.isspace() or character in "/@?" for character in host):
        raise ArgumentIllegalError(
            f"the writer's address {address!r} is not host:port with a port from 1 to 65535, such as 127.0.0.1:8081",
            argument=argument,
        )
    return address


def stores_of(url: str | Sequence[str]) -> tuple[str, ...]:
    """Return the URLs of several stores: a sequence of them, or a text in which a comma separates them."""
    urls = url.split(STORE_SEPARATOR) if isinstance(url, str) else url
    return tuple(dict.fromkeys(one.strip() for one in urls))


def members_of(address: str) -> tuple[str, ...]:
    """Return the addresses in *address*: host:port of a writer, or those of a group's members, separated by ``|``."""
    return tuple(dict.fromkeys(one.strip() for one in address.split(SEPARATOR)))


def require_store_address(address: str, argument: str = "writers") -> str:
    """Return *address* without spaces if it names a writer or a group's members; else raise ArgumentIllegalError."""
    return SEPARATOR.join(require_writer_address(one, argument) for one in members_of(address))


def explained(error: StoreError, address: str, credentials: Credentials) -> StoreError:
    """Return *error* of a call to the writer at *address*, or an error that names the cause, if one is found."""
    if not isinstance(error, _UNREACHED) or credentials.target(address).is_tls:
        return error
    cause = look(address)
    if cause is None:
        return error
    explained_error = type(error)(f"{error.message}: the writer at {address} was not reached: {cause}", **error.facts)
    explained_error.__cause__ = error
    return explained_error


def wrong_address(address: str, credentials: Credentials) -> WriterUnreachableError | None:
    """Return the error for an *address* that waiting does not repair: an unknown host, or another service.

    None if no fault is found within a second. A refused connection is no such fault: the writer may be starting.
    """
    if credentials.target(address).is_tls:
        return None
    cause = look(address)
    if cause is None or not cause.is_final:
        return None
    return WriterUnreachableError(f"the writer at {address} was not reached: {cause}", address=address)


class Cause:
    """A reason why an address cannot be used. is_final: the fault does not depend on which service is running."""

    def __init__(self, text: str, *, is_final: bool) -> None:
        self._text = text
        self.is_final = is_final

    def __str__(self) -> str:
        return self._text


def look(address: str) -> Cause | None:
    """Dial *address* once, for at most a second, and return the fault; None if none is found."""
    found: list[Cause | None] = []

    def dial() -> None:
        found.append(_dial(address))

    thread = threading.Thread(target=dial, name="tidemark-look", daemon=True)  # daemon: a resolver may block longer
    thread.start()
    thread.join(LOOK_S)
    return found[0] if found else None


def _dial(address: str) -> Cause | None:
    host, _, port = address.removeprefix(TLS_SCHEME).rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), LOOK_S) as connection:
            connection.sendall(_PREFACE)
            answer = connection.recv(64)
    except socket.gaierror as error:
        unknown = error.errno == socket.EAI_NONAME
        return Cause(f"the host {host!r} is unknown ({error.strerror}); {_REMEDY}", is_final=unknown)
    except ConnectionRefusedError:
        return Cause("the connection is refused: is the writer running, and is this its port?", is_final=False)
    except TimeoutError:
        return None
    except OSError as error:
        return Cause(str(error), is_final=False)
    if len(answer) < _FRAME_HEAD or answer[3] == _SETTINGS or answer[0] == _TLS_ALERT:
        return None
    spoken = ", but HTTP/1, as the query service does" if answer.startswith(b"HTTP/1") else ""
    return Cause(f"the service there does not speak gRPC{spoken}; {_REMEDY}", is_final=True)


def speaks_grpc(host: str, port: int) -> bool:
    """Return True if the service at host:port answers HTTP/2 without TLS, as a writer does."""
    try:
        with socket.create_connection((host, port), LOOK_S) as connection:
            connection.sendall(_PREFACE)
            answer = connection.recv(_FRAME_HEAD)
    except OSError:
        return False
    return len(answer) == _FRAME_HEAD and answer[3] == _SETTINGS
