"""SourceOptions: every option of the source with its default; the source of the list in docs/spark.md."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ByteSize, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from tidemark.client.errors.address_faults import stores_of
from tidemark.errors import ArgumentIllegalError
from tidemark.format.tags import parse_tag_expression
from tidemark.spark.columns import all_columns, kafka_columns, parse_body_schema
from tidemark.spark.option_values import (
    EARLIEST,
    LATEST,
    ByQueue,
    End,
    parse_assignment,
    parse_offsets,
    parse_seconds,
    parse_times,
)
from tidemark.tls.credentials import Credentials

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

M = TypeVar("M", bound="Options")
_Offsets = Annotated[Any, BeforeValidator(parse_offsets)]
_ByQueue = Annotated[Any, BeforeValidator(parse_times)]
Seconds = Annotated[float, BeforeValidator(parse_seconds)]
_SPARKS = frozenset({"checkpointlocation"})  # Spark's own options that it passes to a sink
_Schema = Annotated[Any, BeforeValidator(parse_body_schema)]
_Mode = Annotated[Literal["PERMISSIVE", "FAILFAST"], BeforeValidator(str.upper)]
_Milliseconds = Annotated[int, Field(ge=0)]


TLS_CA = (
    "PEM file of the services' CAs, at the same path on every worker; without this and the next four the "
    "environment applies (`TIDEMARK_TLS_CA`, …)"
)
TLS_CERT = "PEM file of a client certificate"
TLS_KEY = "PEM file of its key"
TOKEN = "token; Spark redacts it, but a shared notebook shows it"  # noqa: S105
TOKEN_FILE = "file with it, on every worker; read again when it changes"  # noqa: S105


class Options(BaseModel):
    """Base of option models. Option names are case-insensitive, and values are strings."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=lambda name: name.replace("_", ""))

    @classmethod
    def option_names(cls) -> dict[str, str]:
        """Return the option names in camel case, by field."""
        return {name: to_camel(name) for name in cls.model_fields}

    @property
    def credentials(self) -> Credentials | None:
        """Credentials from tlsCa, tlsCert, tlsKey, token and tokenFile; None if none of them is set."""
        given = [getattr(self, name, None) for name in ("tls_ca", "tls_cert", "tls_key", "token", "token_file")]
        return Credentials(*given) if any(given) else None


class SourceOptions(Options):
    """Options of the source: the store, the queues and offsets to read, and limits."""

    path: Path | None = Field(
        None, description="the store's directory, if driver and workers can read it; otherwise set `url`"
    )
    state_path: Path | None = Field(None, description="for an attached broker: folder of Tidemark's own files about it")
    url: str | None = Field(
        None,
        description="the query service, `http://host:8080`; required by `commitGroup`. Of a group: those of all "
        "members, separated by `|`. Of [several stores](#several-stores): all, separated by commas",
    )
    timeout: Seconds = Field("60s", gt=0, validate_default=True, description="timeout of one request")
    tls_ca: str | None = Field(None, description=TLS_CA)
    tls_cert: str | None = Field(None, description=TLS_CERT)
    tls_key: str | None = Field(None, description=TLS_KEY)
    token: str | None = Field(None, description=TOKEN, repr=False)
    token_file: str | None = Field(None, description=TOKEN_FILE)

    subscribe: str | None = Field(None, description="topics, separated by commas")
    subscribe_pattern: re.Pattern[str] | None = Field(
        None, description="topics whose whole name matches this expression; a stream also finds new ones"
    )
    assign: Annotated[Any, BeforeValidator(parse_assignment)] = Field(None, description='queues: `{"topic": [0, 1]}`')
    starting_offsets: _Offsets = Field(
        None,
        description="`earliest` (default of a batch), `latest` (of a stream), or per queue: "
        '`{"topic": {"0": 23, "1": -2}}`, -2 for earliest, -1 for latest; a checkpoint takes precedence',
    )
    ending_offsets: _Offsets = Field(None, description="batch: exclusive end, in the same notation; default `latest`")
    starting_timestamp: _Milliseconds | None = Field(
        None,
        description="first message stored at or after this time, epoch milliseconds; overrides startingOffsets",
    )
    ending_timestamp: _Milliseconds | None = Field(
        None, description="batch: end before the first message stored at or after this time"
    )
    starting_offsets_by_timestamp: _ByQueue = Field(
        None, description='startingTimestamp per queue: `{"topic": {"0": 1767225600000}}`'
    )
    ending_offsets_by_timestamp: _ByQueue = Field(None, description="batch: endingTimestamp per queue")
    starting_offsets_by_timestamp_strategy: Literal["error", "latest"] = Field(
        "error", description="if no message is that new: fail, or start at `latest`"
    )
    fail_on_data_loss: bool = Field(
        True,
        description="fail if messages or a topic were deleted unread; false: continue with the rest",
    )
    fail_on_corruption: bool = Field(True, description="fail at a damaged record; false: omit it with a warning")
    tag: str | None = Field(None, description="only messages with this tag, or one of `A || B`")
    key: str | None = Field(None, description="only messages with this key")
    key_lookup_limit: int = Field(
        1000,
        ge=0,
        description="batch with `key`: read by the key index if at most this many messages have it; 0: scan the queues",
    )
    body_schema: _Schema = Field(
        None,
        description="JSON fields of the body as columns: `carrier string, delay int`, also struct&lt;&gt; and "
        "array&lt;&gt;",
    )
    mode: _Mode = Field(
        "PERMISSIVE",
        description="for another body: nulls, and its text in bodySchema's column `_corrupt_record string`; "
        "`FAILFAST` fails the query",
    )
    kafka_columns: bool = Field(
        False, description="[the columns of Spark's Kafka source](#kafkas-columns) instead; not with bodySchema"
    )
    include_headers: bool = Field(False, description="with kafkaColumns: also the column `headers`")
    push_filters: bool = Field(
        False,
        description="batch: the query's [filters](#read) skip other messages",
    )
    clock_slack: Seconds = Field(
        "10m",
        validate_default=True,
        description="margin for filters on store_timestamp, in case a writer's clock was set back",
    )
    min_partitions: int | None = Field(None, ge=1, description="divide queues into at least this many tasks")
    min_offsets_per_partition: int = Field(
        8192,
        ge=1,
        description="without minPartitions: smaller queues share tasks of this many messages; 1: one task per queue",
    )
    max_bytes_per_partition: ByteSize = Field(
        "128MiB",
        validate_default=True,
        ge=1,
        description="without minPartitions: a queue with more stored bytes has several tasks, estimated with `url`",
    )
    max_offsets_per_trigger: int | None = Field(
        None,
        ge=1,
        description="stream: messages per trigger at most, shared by the queues in proportion",
    )
    min_offsets_per_trigger: int | None = Field(
        None, ge=1, description="stream: wait for this many messages, up to maxTriggerDelay"
    )
    max_trigger_delay: Seconds = Field("15m", validate_default=True, description="stream: longest such wait")
    max_bytes_per_trigger: ByteSize | None = Field(
        None,
        ge=1,
        description="stream: stored bytes per trigger (`512MiB`) at most, estimated with `url`; at least one message",
    )
    commit_group: str | None = Field(None, description="stream: commit the progress to this consumer group")

    @model_validator(mode="after")
    def _check(self) -> SourceOptions:
        both = self.path is not None and self.url is not None  # allowed only with commitGroup
        if (self.path is None and self.url is None) or (both and self.commit_group is None):
            raise ValueError("set one of `path` (files) and `url` (query service), both only with commitGroup")
        if self.commit_group is not None and self.url is None:
            raise ValueError("commitGroup requires `url`: the query service stores the groups' offsets")
        if len(self.stores) > 1:
            self._check_several()
        if [self.subscribe, self.subscribe_pattern, self.assign].count(None) != 2:
            raise ValueError("set exactly one of subscribe, subscribePattern and assign")
        if self.subscribe is not None and not self.topics:
            raise ValueError("subscribe must name at least one topic")
        if self.kafka_columns and self.body_schema is not None:
            raise ValueError("set only one of kafkaColumns and bodySchema; parse the column value with from_json")
        if self.include_headers and not self.kafka_columns:
            raise ValueError("includeHeaders requires kafkaColumns=true; otherwise use the column properties")
        least, most = self.min_offsets_per_trigger, self.max_offsets_per_trigger
        if least is not None and most is not None and least > most:
            raise ValueError(f"minOffsetsPerTrigger is {least}, but maxOffsetsPerTrigger is {most}")
        return self

    def _check_several(self) -> None:
        """Raise ValueError for options that name queues without their stores."""
        if self.path is not None:
            raise ValueError(f"path is one store, but url names {len(self.stores)}: name the one of that store")
        for name in (
            "starting_offsets",
            "ending_offsets",
            "starting_offsets_by_timestamp",
            "ending_offsets_by_timestamp",
        ):
            value = getattr(self, name)
            if value is not None and not isinstance(value, End):
                raise ValueError(
                    f"{to_camel(name)}: url names {len(self.stores)} stores, so queues cannot be named; use earliest, "
                    "latest, startingTimestamp or endingTimestamp"
                )

    @property
    def stores(self) -> tuple[str, ...]:
        """The URLs of `url`, one for each store."""
        return () if self.url is None else stores_of(self.url)

    @property
    def several_stores(self) -> tuple[str, ...]:
        """The URLs of the stores, if there are several; otherwise none."""
        return self.stores if len(self.stores) > 1 else ()

    @property
    def columns(self) -> StructType:
        """Columns that are read without `.schema(...)`."""
        if self.kafka_columns:
            return kafka_columns(include_headers=self.include_headers)
        return all_columns(self.body_schema, with_store=bool(self.several_stores))

    @property
    def topics(self) -> list[str]:
        """Topics of `subscribe`."""
        return sorted({name.strip() for name in (self.subscribe or "").split(",")} - {""})

    @property
    def asks_for_offsets(self) -> bool:
        """True if offsets are given as numbers; then wait for visibility, so that they do not seem to be missing."""
        named = (self.starting_offsets, self.ending_offsets)
        return any(offsets is not None and not isinstance(offsets, End) for offsets in named)

    @property
    def tags(self) -> frozenset[str] | None:
        """Tags of `tag`; None for all messages."""
        return parse_tag_expression(self.tag)

    def require_batch(self) -> SourceOptions:
        """Raise ArgumentIllegalError for a start at latest or an end at earliest."""
        if _names(self.starting_offsets, End.LATEST, LATEST):
            raise _illegal("startingOffsets", "a batch cannot start at latest: there are no messages after it")
        if _names(self.ending_offsets, End.EARLIEST, EARLIEST):
            raise _illegal("endingOffsets", "a batch cannot end at earliest")
        return self

    def require_stream(self) -> SourceOptions:
        """Raise ArgumentIllegalError if an end is set."""
        for name in ("ending_offsets", "ending_timestamp", "ending_offsets_by_timestamp"):
            if getattr(self, name) is not None:
                raise _illegal(to_camel(name), "not allowed for a stream, which has no end")
        return self


def read_options(model: type[M], given: Mapping[str, str]) -> M:
    """Parse the options *given*. Raises ArgumentIllegalError (fact: argument) if one is invalid or unknown."""
    try:
        return model.model_validate({name.lower(): text for name, text in given.items() if name.lower() not in _SPARKS})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise _refusal(model, first["loc"], first["type"], first["msg"]) from None


def _names(offsets: End | ByQueue | None, end: End, number: int) -> bool:
    """Return True if *offsets* name that end, for any queue."""
    if offsets is None or isinstance(offsets, End):
        return offsets is end
    return any(offset == number for queues in offsets.values() for offset in queues.values())


def _refusal(model: type[Options], place: tuple[int | str, ...], kind: str, message: str) -> ArgumentIllegalError:
    by_alias = {name.replace("_", ""): shown for name, shown in model.option_names().items()}
    if not place:
        return ArgumentIllegalError(message.removeprefix("Value error, "))
    name = str(place[0])
    if kind == "extra_forbidden":
        return _illegal(name, f"unknown option{_guess(name, by_alias)}")
    return _illegal(by_alias.get(name, name), message.removeprefix("Value error, "))


def _guess(name: str, known: Mapping[str, str]) -> str:
    near: Iterable[str] = difflib.get_close_matches(name, known, n=1)
    return "".join(f"; did you mean {known[one]}?" for one in near)


def _illegal(argument: str, message: str) -> ArgumentIllegalError:
    return ArgumentIllegalError(f"option {argument}: {message}", argument=argument)
