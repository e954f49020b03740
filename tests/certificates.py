"""Certificate authorities and certificates for tests, made by the `openssl` command."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CONFIG = """
[ca]
default_ca = own
[own]
database = {folder}/index.txt
new_certs_dir = {folder}
default_md = sha256
policy = names
unique_subject = no
rand_serial = yes
[names]
commonName = supplied
"""
_LONG_AGO = ("20200101000000Z", "20200102000000Z")
_NOW = ("20200101000000Z", "20990101000000Z")
BOTH_USES = "serverAuth,clientAuth"


@dataclass(frozen=True)
class Pair:
    """A certificate and its key as PEM files."""

    cert: Path
    key: Path

    def put(self, at: Pair) -> None:
        """Replace the files of *at*, each atomically."""
        for new, old in ((self.cert, at.cert), (self.key, at.key)):
            copy = old.with_suffix(".new")
            shutil.copyfile(new, copy)
            copy.rename(old)

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings of a service that presents this certificate."""
        return {"tls_cert": self.cert, "tls_key": self.key}


class Authority:
    """A certificate authority with its own folder."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir()
        self._folder = folder
        self._own = Pair(folder / "ca.pem", folder / "ca.key")
        self._config = folder / "openssl.cnf"
        self._config.write_text(_CONFIG.format(folder=folder))
        (folder / "index.txt").touch()
        usage = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")  # Python 3.13 requires it
        _openssl("req", "-x509", *_new_key(self._own.key), "-subj", f"/CN={name}", "-days", 2, *usage, "-out", self.ca)

    @property
    def ca(self) -> Path:
        """Return the authority's own certificate."""
        return self._own.cert

    def issue(self, name: str, *, uses: str = BOTH_USES, expired: bool = False) -> Pair:
        """Issue a certificate for 127.0.0.1 and localhost."""
        pair = Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        request, extensions = self._folder / f"{name}.csr", self._folder / f"{name}.ext"
        extensions.write_text(
            f"basicConstraints=CA:FALSE\nsubjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage={uses}\n"
            "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
        )
        begin, end = _LONG_AGO if expired else _NOW
        _openssl("req", "-new", *_new_key(pair.key), "-subj", f"/CN={name}", "-out", request)
        signing = ("-config", self._config, "-cert", self.ca, "-keyfile", self._own.key, "-notext")
        dates = ("-startdate", begin, "-enddate", end)
        _openssl("ca", "-batch", *signing, *dates, "-extfile", extensions, "-in", request, "-out", pair.cert)
        return pair


def _new_key(path: Path) -> tuple[object, ...]:
    return "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", path


def _openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=60)
