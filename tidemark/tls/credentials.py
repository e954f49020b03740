"""Credentials: the CAs that a client trusts, and the certificate or token that it presents."""

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
    """Contents of the PEM files. None: the transport's default CAs; no client certificate."""

    ca: bytes | None
    cert: bytes | None
    key: bytes | None


class Target(NamedTuple):
    """Address for gRPC, host:port, and whether to use TLS."""

    address: str
    is_tls: bool


@dataclass(frozen=True)
class Credentials:
    """Credentials of a client. ca, cert and key are paths of PEM files.

    ca          CAs that sign the services' certificates; None: the system's default CAs
    cert        client certificate chain, the client's own certificate first; requires key
    key         private key of cert, without a password
    token       presented as `authorization: Bearer …`
    token_file  file with the token, used if token is None; read again when it changes
    """

    ca: str | PathLike[str] | None = None
    cert: str | PathLike[str] | None = None
    key: str | PathLike[str] | None = None
    token: str | None = field(default=None, repr=False)
    token_file: str | PathLike[str] | None = None

    @classmethod
    def from_environment(cls) -> Credentials:
        """Read TIDEMARK_TLS_CA, TIDEMARK_TLS_CERT, TIDEMARK_TLS_KEY, TIDEMARK_TOKEN and TIDEMARK_TOKEN_FILE.

        Does not use pydantic, which is slow to import.
        """
        names = ("TLS_CA", "TLS_CERT", "TLS_KEY", "TOKEN", "TOKEN_FILE")
        return cls(*(os.environ.get(f"TIDEMARK_{name}") or None for name in names))

    @property
    def shows_token(self) -> bool:
        """True if a token or a token file is set."""
        return self.token is not None or self.token_file is not None

    def authorization(self) -> str | None:
        """Return the header's value; None without a token. Raises TokenFileError if the file contains no token."""
        if self.token is not None:
            return f"Bearer {self.token}"
        return None if self.token_file is None else f"Bearer {self._token_file.read()}"

    @functools.cached_property
    def _token_file(self) -> TokenFile:
        assert self.token_file is not None
        return TokenFile(Path(self.token_file))

    def target(self, address: str) -> Target:
        """Return the target of *address*: with TLS if it is tls://host:port or if `ca` is set."""
        is_tls = address.startswith(TLS_SCHEME) or self.ca is not None
        return Target(address.removeprefix(TLS_SCHEME), is_tls)

    def read(self) -> Pems:
        """Return the PEM data for gRPC. Raises TlsFilesError, which names the invalid file."""
        self.context()
        ca, pair = self._ca, self._pair
        cert, key = (None, None) if pair is None else (read_certificates(pair[0]), read_key(pair[1]))
        return Pems(None if ca is None else read_certificates(ca), cert, key)

    def context(self, *, trusts_all: bool = False) -> ssl.SSLContext:
        """Return an SSL context for HTTP. Raises TlsFilesError, which names the invalid file.

        trusts_all: do not verify the server, for health checks of the own host
        """
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
            raise TlsFilesError(f"{self.cert or self.key}: set both the certificate and its private key")
        return Path(self.cert), Path(self.key)
