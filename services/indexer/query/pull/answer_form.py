"""The form of a pull's answer: JSON, NDJSON, an Arrow stream, or the records as stored, with the form's options."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from starlette.exceptions import HTTPException

from tidemark.errors import ArgumentIllegalError
from tidemark.read.messages.arrow_stream import TableForm
from tidemark.read.messages.body import BodyEncoding

from ..schema.query_arguments import PullLimits


class BodyFormat(enum.Enum):
    """Format of a pull's answer, with its media type."""

    JSON = "application/json"
    NDJSON = "application/x-ndjson"
    ARROW = "application/vnd.apache.arrow.stream"
    RECORDS = "application/octet-stream"


F = TypeVar("F", bound=enum.Enum)
_BY_RANGE = {
    **{body_format.value: body_format for body_format in BodyFormat},
    "*/*": BodyFormat.JSON,
    "application/*": BodyFormat.JSON,
    "application/ndjson": BodyFormat.NDJSON,
}
_FORMAT_OF_OPTION = {
    "verify": BodyFormat.RECORDS,
    "columns": BodyFormat.ARROW,
    "dictionaries": BodyFormat.ARROW,
    "compression": BodyFormat.ARROW,
}


class AnswerForm(NamedTuple):
    """Form of the messages in an answer. body_encoding: in JSON; table: of an Arrow stream."""

    body_format: BodyFormat
    body_encoding: BodyEncoding
    table: TableForm

    @classmethod
    def of(cls, asked: PullLimits, accept: str | None) -> AnswerForm:
        """Return the form that a request with this Accept header asks for.

        Raises:
            HTTPException: 406, no format has this media type.
            ArgumentIllegalError: an option is given that the format does not have.
        """
        body_format = accepted_of(accept, _BY_RANGE, hint="; text/event-stream with follow=true")
        for name in asked.model_fields_set & _FORMAT_OF_OPTION.keys():
            needed = _FORMAT_OF_OPTION[name]
            if body_format is not needed and getattr(asked, name) != PullLimits.model_fields[name].default:
                raise ArgumentIllegalError(
                    f"{name}: the answer's format does not have it: send Accept: {needed.value}, or leave it out",
                    argument=name,
                )
        compression = None if asked.compression is None else asked.compression.value
        return cls(body_format, asked.body_encoding, TableForm(asked.columns, asked.dictionaries, compression))

    @property
    def is_records(self) -> bool:
        """True if the answer has records as stored."""
        return self.body_format is BodyFormat.RECORDS

    @property
    def is_plain_arrow(self) -> bool:
        """True if the answer is an Arrow stream that is not compressed."""
        return self.body_format is BodyFormat.ARROW and self.table.compression is None


def accepted_of(accept: str | None, by_range: Mapping[str, F], *, hint: str = "") -> F:
    """Return the format that an Accept header selects. by_range: formats by media range; */* is the default.

    Raises:
        HTTPException: 406, the header accepts none of the formats.
    """
    if not accept:
        return by_range["*/*"]
    best: tuple[float, F] | None = None
    for choice in accept.split(","):
        media_range, *parameters = (piece.strip() for piece in choice.split(";"))
        body_format = by_range.get(media_range.lower())
        weight = _weight(parameters)
        if body_format is not None and weight > 0 and (best is None or weight > best[0]):
            best = (weight, body_format)
    if best is None:
        expected = ", ".join(dict.fromkeys(str(choice.value) for choice in by_range.values()))
        raise HTTPException(406, f"Accept: expected one of {expected}{hint}")
    return best[1]


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return float(parameter[2:])
            except ValueError:
                return 0.0
    return 1.0
