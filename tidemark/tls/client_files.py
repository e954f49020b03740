"""Tls: whom a client trusts, and what it shows."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from tidemark.errors import TlsFilesError
from tidemark.tls.pem import as_text, load_pair, read_certificates, read_key

TLS_SCHEME = "tls://"


class Pems(NamedTuple):
    """What the files hold. None: the transport's own list of CAs; no certificate to show."""

    ca: bytes | None
    cert: bytes | None
    key: bytes | None


class Target(NamedTuple):
    """Where gRPC dials, host:port, and how."""

    address: str
    is_tls: bool


@dataclass(frozen=True)
class Tls:
    """PEM files of a client.

    ca    CAs that sign the services' certificates; None: those that everybody trusts
    cert  a certificate to show where the service asks for one: a chain, its own first; with it goes
    key   its private key, without a password
    """

    ca: str | PathLike[str] | None = None
    cert: str | PathLike[str] | None = None
    key: str | PathLike[str] | None = None

    @classmethod
    def from_environment(cls) -> Tls:
        """TIDEMARK_TLS_CA, TIDEMARK_TLS_CERT, TIDEMARK_TLS_KEY. (By hand: pydantic is slow to import.)"""
        ca, cert, key = (os.environ.get(f"TIDEMARK_TLS_{name}") or None for name in ("CA", "CERT", "KEY"))
        return cls(ca, cert, key)

    def target(self, address: str) -> Target:
        """How gRPC dials *address*: with TLS where it is tls://host:port, or where CAs are given."""
        is_tls = address.startswith(TLS_SCHEME) or self.ca is not None
        return Target(address.removeprefix(TLS_SCHEME), is_tls)

    def read(self) -> Pems:
        """For gRPC. TlsFilesError names the file that is wrong."""
        self.context()
        ca, pair = self._ca, self._pair
        cert, key = (None, None) if pair is None else (read_certificates(pair[0]), read_key(pair[1]))
        return Pems(None if ca is None else read_certificates(ca), cert, key)

    def context(self, *, trusts_all: bool = False) -> ssl.SSLContext:
        """For HTTP. TlsFilesError names the file that is wrong. trusts_all: for who asks its own host how it is."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if trusts_all:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self._ca is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(cadata=as_text(read_certificates(self._ca)))
        if self._pair is not None:
            load_pair(context, *self._pair)
        return context

    @property
    def _ca(self) -> Path | None:
        return None if self.ca is None else Path(self.ca)

    @property
    def _pair(self) -> tuple[Path, Path] | None:
        if self.cert is None and self.key is None:
            return None
        if self.cert is None or self.key is None:
            raise TlsFilesError(f"{self.cert or self.key}: a certificate and its private key go together")
        return Path(self.cert), Path(self.key)
