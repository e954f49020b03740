"""SinkOptions: every option of the sink, with its default. docs/spark.md is written from it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from tidemark.format.primitives import MAX_INNER_BATCH_COUNT
from tidemark.spark.source.source_options import TLS_CA, TLS_CERT, TLS_KEY, TOKEN, TOKEN_FILE, Options, Seconds


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


_Listed = Annotated[tuple[str, ...], BeforeValidator(_listed)]


class SinkOptions(Options):
    """Where messages go."""

    writers: _Listed = Field(description="the writer, `host:port`, or several, separated by commas")
    url: _Listed = Field(
        (),
        description="the query service of each writer, in the same order. A stream needs it: what was sent before a "
        "restart is looked up there",
    )
    topic: str | None = Field(None, description="of all messages; absent: the column `topic`")
    batch_size: int = Field(1000, ge=1, le=MAX_INNER_BATCH_COUNT, description="messages a request to the writer holds")
    timeout: Seconds = Field("60s", gt=0, validate_default=True, description="of a message, over all attempts")
    tls_ca: str | None = Field(None, description=TLS_CA)
    tls_cert: str | None = Field(None, description=TLS_CERT)
    tls_key: str | None = Field(None, description=TLS_KEY)
    token: str | None = Field(None, description=TOKEN, repr=False)
    token_file: str | None = Field(None, description=TOKEN_FILE)
    run_id: Annotated[str, StringConstraints(pattern=r"^[\w.:-]{1,64}$")] | None = Field(
        None, description="batch only: a job that is run again with the same id and rows sends only what is missing"
    )

    @model_validator(mode="after")
    def _check(self) -> SinkOptions:
        if not self.writers:
            raise ValueError("writers names no writer")
        if self.url and len(self.url) != len(self.writers):
            raise ValueError("url names the query service of each writer, in the same order")
        if self.run_id is not None and not self.url:
            raise ValueError("runId needs url: what was sent is looked up at the query service")
        return self
