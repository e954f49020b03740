"""Spark's source and sink over TLS, as a task uses them; no Spark is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.built_store import BuiltStore
from tests.certificates import Authority, Pair
from tests.query_server import serve_query_over_tls
from tidemark.client import Credentials
from tidemark.errors import TlsFailedError
from tidemark.spark.sink.sink_options import SinkOptions
from tidemark.spark.source.open_log import open_log
from tidemark.spark.source.source_options import SourceOptions, read_options

pytestmark = pytest.mark.integration


def test_the_source_reads_over_tls(tmp_path: Path, authority: Authority, server: Pair, client: Pair) -> None:
    """The options are tlsCa, tlsCert and tlsKey; without them the error names the missing one."""
    store = BuiltStore(tmp_path)
    store.topic("orders", queues=1)
    store.publish()
    trust = Credentials(authority.ca, client.cert, client.key).context()
    files = {"tlsCa": str(authority.ca), "tlsCert": str(client.cert), "tlsKey": str(client.key)}
    with serve_query_over_tls(store.root, trust, **server.settings, tls_client_ca=authority.ca) as http:
        asked = {"url": str(http.base_url), "subscribe": "orders"}
        log = open_log(read_options(SourceOptions, {**asked, **files}))
        assert log.topics() == ["orders"]
        log.close()
        log = open_log(read_options(SourceOptions, {**asked, "tlsCa": files["tlsCa"]}))
        with pytest.raises(TlsFailedError, match="it requires a client certificate"):
            log.topics()
        log.close()


def test_source_and_sink_accept_the_same_tls_options() -> None:
    """Without these options the environment of each process determines the files."""
    source = {"url": "https://query:8080", "subscribe": "orders"}
    sink = {"writers": "tls://writer:8081"}
    files = {"tlsca": "/ca.pem", "tlscert": "/client.pem", "tlskey": "/client.key"}
    for model, given in ((SourceOptions, source), (SinkOptions, sink)):
        assert read_options(model, given).credentials is None
        assert read_options(model, {**given, **files}).credentials == Credentials(
            "/ca.pem", "/client.pem", "/client.key"
        )
