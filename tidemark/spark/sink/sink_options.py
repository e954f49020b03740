"""SinkOptions: every option of the sink with its default; the source of the list in docs/spark.md."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from tidemark.format.primitives import MAX_INNER_BATCH_COUNT
from tidemark.spark.source.source_options import TLS_CA, TLS_CERT, TLS_KEY, TOKEN, TOKEN_FILE, Options, Seconds


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


_Listed = Annotated[tuple[str, ...], BeforeValidator(_listed)]


class SinkOptions(Options):
    """Options of the sink."""

    writers: _Listed = Field(description="writer, `host:port`; several separated by commas")
    url: _Listed = Field(
        (),
        description="query service of each writer, in order; required by streams and `runId`, to find stored messages",
    )
    topic: str | None = Field(None, description="topic of all messages; default: the column `topic`")
    kafka_columns: bool = Field(False, description="[the columns of Spark's Kafka sink](#kafkas-columns) instead")
    batch_size: int = Field(1000, ge=1, le=MAX_INNER_BATCH_COUNT, description="messages per request at most")
    timeout: Seconds = Field("60s", gt=0, validate_default=True, description="timeout of a message, with all attempts")
    tls_ca: str | None = Field(None, description=TLS_CA)
    tls_cert: str | None = Field(None, description=TLS_CERT)
    tls_key: str | None = Field(None, description=TLS_KEY)
    token: str | None = Field(None, description=TOKEN, repr=False)
    token_file: str | None = Field(None, description=TOKEN_FILE)
    run_id: Annotated[str, StringConstraints(pattern=r"^[\w.:-]{1,64}$")] | None = Field(
        None,
        description="batch: id of the job; a repeat with the same id and rows sends only missing messages",
    )

    @model_validator(mode="after")
    def _check(self) -> SinkOptions:
        if not self.writers:
            raise ValueError("writers must name at least one writer")
        if self.url and len(self.url) != len(self.writers):
            raise ValueError("url must name one query service per writer, in the same order")
        if self.run_id is not None and not self.url:
            raise ValueError("runId requires url: the query service is asked which messages are stored")
        return self
