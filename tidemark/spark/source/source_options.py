"""SourceOptions: every option of the source, with its default. docs/spark.md is written from it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ByteSize, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from tidemark.errors import ArgumentIllegalError
from tidemark.format.tags import parse_tag_expression
from tidemark.spark.columns import parse_body_schema
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

M = TypeVar("M", bound="Options")
_Offsets = Annotated[Any, BeforeValidator(parse_offsets)]
_ByQueue = Annotated[Any, BeforeValidator(parse_times)]
Seconds = Annotated[float, BeforeValidator(parse_seconds)]
_SPARKS = frozenset({"checkpointlocation"})  # Spark's own, which it hands to a sink, too
_Schema = Annotated[Any, BeforeValidator(parse_body_schema)]
_Mode = Annotated[Literal["PERMISSIVE", "FAILFAST"], BeforeValidator(str.upper)]
_Milliseconds = Annotated[int, Field(ge=0)]


TLS_CA = (
    "PEM file of the CAs that sign the services' certificates, at the same path on every worker; without these three "
    "and `token`, `tokenFile` each process goes by its own environment: TIDEMARK_TLS_CA, TIDEMARK_TOKEN_FILE, …"
)
TLS_CERT = "PEM file of the certificate to show where the services ask for one"
TLS_KEY = "PEM file of its private key"
TOKEN = "to show to the services; Spark redacts it where it shows options, a notebook that is shared does not"  # noqa: S105
TOKEN_FILE = "file that holds it, at the same path on every worker; read again when it changes"  # noqa: S105


class Options(BaseModel):
    """Options are names without regard to case, and texts."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=lambda name: name.replace("_", ""))

    @classmethod
    def option_names(cls) -> dict[str, str]:
        """By field: as users write it."""
        return {name: to_camel(name) for name in cls.model_fields}

    @property
    def credentials(self) -> Credentials | None:
        """Of the options tlsCa, tlsCert, tlsKey, token, tokenFile; None where none is given."""
        given = [getattr(self, name, None) for name in ("tls_ca", "tls_cert", "tls_key", "token", "token_file")]
        return Credentials(*given) if any(given) else None


class SourceOptions(Options):
    """Where the log is; what of it to read, from where to where, how much at once."""

    path: Path | None = Field(None, description="the store's directory, for who sees its files; else `url`")
    state_path: Path | None = Field(
        None, description="of an attached broker's directory: where Tidemark keeps its own files about it"
    )
    url: str | None = Field(None, description="the query service, `http://host:8080`; needed by `commitGroup`")
    timeout: Seconds = Field("60s", gt=0, validate_default=True, description="of one request to the query service")
    tls_ca: str | None = Field(None, description=TLS_CA)
    tls_cert: str | None = Field(None, description=TLS_CERT)
    tls_key: str | None = Field(None, description=TLS_KEY)
    token: str | None = Field(None, description=TOKEN, repr=False)
    token_file: str | None = Field(None, description=TOKEN_FILE)

    subscribe: str | None = Field(None, description="topics, separated by commas")
    subscribe_pattern: re.Pattern[str] | None = Field(
        None, description="topics whose whole name matches this regular expression; new ones are found by a stream"
    )
    assign: Annotated[Any, BeforeValidator(parse_assignment)] = Field(None, description='queues: `{"topic": [0, 1]}`')
    starting_offsets: _Offsets = Field(
        None,
        description='`earliest`, `latest`, or `{"topic": {"0": 23, "1": -2}}` for all queues, -2 the earliest, -1 the '
        "latest; batch from earliest, stream from latest. A stream goes on from its checkpoint",
    )
    ending_offsets: _Offsets = Field(None, description="batch only: the first offset not read; default `latest`")
    starting_timestamp: _Milliseconds | None = Field(
        None, description="from the first message stored at this time, epoch milliseconds; goes before startingOffsets"
    )
    ending_timestamp: _Milliseconds | None = Field(
        None, description="batch only: to the first message stored at this time, exclusive"
    )
    starting_offsets_by_timestamp: _ByQueue = Field(
        None, description='by queue: `{"topic": {"0": 1767225600000}}`; goes before startingOffsets'
    )
    ending_offsets_by_timestamp: _ByQueue = Field(None, description="batch only: by queue, exclusive")
    starting_offsets_by_timestamp_strategy: Literal["error", "latest"] = Field(
        "error", description="where no message is so young: an `error`, or from the `latest` on"
    )
    fail_on_data_loss: bool = Field(
        True, description="fail where messages are gone (deleted, topic away); false: go on with what there is"
    )
    fail_on_corruption: bool = Field(
        True, description="fail at a record that fails its check; false: leave it out, with a warning"
    )
    tag: str | None = Field(None, description="only messages with this tag, or one of `A || B`")
    key: str | None = Field(None, description="only messages that carry this key")
    key_lookup_limit: int = Field(
        1000,
        ge=0,
        description="batch only, with `key`: the key index finds them, and nothing else is read, where at most so many "
        "messages of the topic carry it; 0: queues are scanned always",
    )
    body_schema: _Schema = Field(
        None,
        description="bodies are JSON, and these fields of theirs are columns, too: `carrier string, delay int`, with "
        "struct&lt;&gt; and array&lt;&gt;",
    )
    mode: _Mode = Field(
        "PERMISSIVE",
        description="of bodySchema: a body that is no JSON object, or has a field of another type, gives nulls, and "
        "its text where bodySchema has a column `_corrupt_record string`; `FAILFAST`: it ends the query",
    )
    push_filters: bool = Field(
        False,
        description="batch only: let filters leave out what need not be read; needs "
        "`spark.sql.python.filterPushdown.enabled`. Every query then needs a `load()` of its own",
    )
    clock_slack: Seconds = Field(
        "10m",
        validate_default=True,
        description="filters on store_timestamp read so much more: a writer's clock may have been set back by as much",
    )
    min_partitions: int | None = Field(
        None, ge=1, description="cut queues into at least so many tasks; default one a queue with much to read"
    )
    min_offsets_per_partition: int = Field(
        8192,
        ge=1,
        description="without minPartitions: queues with fewer messages to read share tasks, until a task has so many; "
        "1: a task a queue",
    )
    max_offsets_per_trigger: int | None = Field(
        None, ge=1, description="stream: at most so many messages a trigger, shared by the queues in proportion"
    )
    min_offsets_per_trigger: int | None = Field(
        None, ge=1, description="stream: wait for so many, at most maxTriggerDelay"
    )
    max_trigger_delay: Seconds = Field(
        "15m", validate_default=True, description="stream: how long minOffsetsPerTrigger may wait"
    )
    max_bytes_per_trigger: ByteSize | None = Field(
        None,
        ge=1,
        description="stream: at most so many bytes as stored (`512MiB`), at least one message; with `url` estimated "
        "from a sample",
    )
    commit_group: str | None = Field(
        None, description="stream: put what is done on record as this consumer group's progress"
    )

    @model_validator(mode="after")
    def _check(self) -> SourceOptions:
        both = self.path is not None and self.url is not None  # good for commitGroup alone
        if (self.path is None and self.url is None) or (both and self.commit_group is None):
            raise ValueError("give `path` (files) or `url` (query service), one of them")
        if self.commit_group is not None and self.url is None:
            raise ValueError("commitGroup needs `url`: the query service keeps groups")
        if [self.subscribe, self.subscribe_pattern, self.assign].count(None) != 2:
            raise ValueError("give one of subscribe, subscribePattern and assign")
        if self.subscribe is not None and not self.topics:
            raise ValueError("subscribe names no topic")
        least, most = self.min_offsets_per_trigger, self.max_offsets_per_trigger
        if least is not None and most is not None and least > most:
            raise ValueError("minOffsetsPerTrigger is above maxOffsetsPerTrigger")
        return self

    @property
    def topics(self) -> list[str]:
        """Those of `subscribe`."""
        return sorted({name.strip() for name in (self.subscribe or "").split(",")} - {""})

    @property
    def asks_for_offsets(self) -> bool:
        """Whether offsets are given as numbers: what is not visible yet must not look as if it were not there."""
        named = (self.starting_offsets, self.ending_offsets)
        return any(offsets is not None and not isinstance(offsets, End) for offsets in named)

    @property
    def tags(self) -> frozenset[str] | None:
        """Those of `tag`; None for all messages."""
        return parse_tag_expression(self.tag)

    def require_batch(self) -> SourceOptions:
        """ArgumentIllegalError for a start at the end, or an end at the start."""
        if _names(self.starting_offsets, End.LATEST, LATEST):
            raise _illegal("startingOffsets", "a batch cannot begin at latest: there is nothing behind it")
        if _names(self.ending_offsets, End.EARLIEST, EARLIEST):
            raise _illegal("endingOffsets", "a batch cannot end at earliest")
        return self

    def require_stream(self) -> SourceOptions:
        """ArgumentIllegalError for an end."""
        for name in ("ending_offsets", "ending_timestamp", "ending_offsets_by_timestamp"):
            if getattr(self, name) is not None:
                raise _illegal(to_camel(name), "a stream has no end")
        return self


def read_options(model: type[M], given: Mapping[str, str]) -> M:
    """The options that are *given*; ArgumentIllegalError (fact: argument) for one that is wrong or unknown."""
    try:
        return model.model_validate({name.lower(): text for name, text in given.items() if name.lower() not in _SPARKS})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise _refusal(model, first["loc"], first["type"], first["msg"]) from None


def _names(offsets: End | ByQueue | None, end: End, number: int) -> bool:
    """Whether *offsets* name that end, of any queue."""
    if offsets is None or isinstance(offsets, End):
        return offsets is end
    return any(offset == number for queues in offsets.values() for offset in queues.values())


def _refusal(model: type[Options], place: tuple[int | str, ...], kind: str, message: str) -> ArgumentIllegalError:
    by_alias = {name.replace("_", ""): shown for name, shown in model.option_names().items()}
    if not place:
        return ArgumentIllegalError(message.removeprefix("Value error, "))
    name = str(place[0])
    if kind == "extra_forbidden":
        return _illegal(name, f"there is no such option{_guess(name, by_alias)}")
    return _illegal(by_alias.get(name, name), message.removeprefix("Value error, "))


def _guess(name: str, known: Mapping[str, str]) -> str:
    near: Iterable[str] = difflib.get_close_matches(name, known, n=1)
    return "".join(f"; did you mean {known[one]}?" for one in near)


def _illegal(argument: str, message: str) -> ArgumentIllegalError:
    return ArgumentIllegalError(f"option {argument}: {message}", argument=argument)
