"""Credentials: whom a client trusts, and what it shows."""

from __future__ import annotations

import functools
import os
import ssl
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from tidemark.errors import TlsFilesError
from tidemark.tls.pem import as_text, load_pair, read_certificates, read_key
from tidemark.tls.token_file import TokenFile

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
class Credentials:
    """Of a client; the files of ca, cert and key are PEM.

    ca          CAs that sign the services' certificates; None: those that everybody trusts
    cert        a certificate to show where the service asks for one: a chain, its own first; with it goes
    key         its private key, without a password
    token       to show as `authorization: Bearer …`
    token_file  a file that holds it instead, read again when it changes
    """

    ca: str | PathLike[str] | None = None
    cert: str | PathLike[str] | None = None
    key: str | PathLike[str] | None = None
    token: str | None = field(default=None, repr=False)
    token_file: str | PathLike[str] | None = None

    @classmethod
    def from_environment(cls) -> Credentials:
        """TIDEMARK_TLS_CA, TIDEMARK_TLS_CERT, TIDEMARK_TLS_KEY, TIDEMARK_TOKEN, TIDEMARK_TOKEN_FILE. (By hand: pydantic
        is slow to import.)"""
        names = ("TLS_CA", "TLS_CERT", "TLS_KEY", "TOKEN", "TOKEN_FILE")
        return cls(*(os.environ.get(f"TIDEMARK_{name}") or None for name in names))

    @property
    def shows_token(self) -> bool:
        """Whether there is one."""
        return self.token is not None or self.token_file is not None

    def authorization(self) -> str | None:
        """The header's value; None where no token is shown. TokenFileError for a file that holds none."""
        if self.token is not None:
            return f"Bearer {self.token}"
        return None if self.token_file is None else f"Bearer {self._token_file.read()}"

    @functools.cached_property
    def _token_file(self) -> TokenFile:
        assert self.token_file is not None
        return TokenFile(Path(self.token_file))

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
