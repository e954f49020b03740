"""Parsing of JSON bodies into columns by Arrow, many at once; a body that is not an object of the schema gives nulls.

The result for a body never depends on its neighbours. Bodies are concatenated: since each begins with a brace and none
continues after its end, the number of objects equals the number of bodies only if each body is one object. Bodies for
which this is not certain are parsed and serialised individually. This also protects Arrow from a body `null`, which
crashes it (apache/arrow#47409).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

_MOST_BYTES = 256 << 20  # limit for parsing together
_SPACE = r"[ \t\r\n]"
_UNSURE = rf"\A{_SPACE}*(?:[^{{ \t\r\n]|\z)|\}}{_SPACE}*[^ \t\r\n,}}\]]"  # no brace first, or text after a brace
_END = pa.scalar(b"\n", pa.binary())
_EMPTY = pa.scalar(b"", pa.binary())


class JsonBodies:
    """Parser of bodies into a struct of *fields*, whose types are Spark's (tidemark.spark.ddl)."""

    def __init__(self, fields: list[pa.Field]) -> None:
        self._type = pa.struct(fields)
        asked = pa.schema([pa.field(field.name, _as_read(field.type)) for field in fields])
        self._options = json.ParseOptions(
            explicit_schema=asked, newlines_in_values=True, unexpected_field_behavior="ignore"
        )

    def parse(self, bodies: pa.BinaryArray) -> pa.StructArray:
        """Return one row per body; null if it is not a JSON object or a field has another type."""
        unsure = pc.match_substring_regex(bodies, _UNSURE)
        if pc.any(unsure).as_py():
            bodies = _with_objects(bodies, np.flatnonzero(unsure.to_numpy(zero_copy_only=False)))
        objects = bodies.drop_null()
        rows = pa.concat_arrays(self._pieces(objects)) if len(objects) else pa.nulls(0, self._type)
        if len(objects) == len(bodies):
            return rows
        is_object = bodies.is_valid().to_numpy(zero_copy_only=False)
        return rows.take(pa.array(np.cumsum(is_object) - 1, mask=~is_object))

    def _pieces(self, bodies: pa.BinaryArray) -> Iterator[pa.StructArray]:
        """Parse all bodies at once; if that fails, divide them in halves down to the invalid ones."""
        rows = self._read(bodies) if len(bodies) == 1 or bodies.nbytes <= _MOST_BYTES else None
        if rows is not None:
            yield rows
        elif len(bodies) == 1:
            yield pa.nulls(1, self._type)
        else:
            half = len(bodies) // 2
            yield from self._pieces(bodies.slice(0, half))
            yield from self._pieces(bodies.slice(half))

    def _read(self, bodies: pa.BinaryArray) -> pa.StructArray | None:
        """Return one row per body; None unless each body is one object with fields of the right types."""
        text = pc.binary_join_element_wise(bodies, _EMPTY, _END).buffers()[2]
        reading = json.ReadOptions(use_threads=False, block_size=text.size)
        try:
            table = json.read_json(pa.BufferReader(text), reading, self._options)
            table.validate(full=True)  # texts are UTF-8
            rows = table.to_struct_array().combine_chunks().cast(self._type)
        except pa.ArrowInvalid:
            return None
        return rows if len(rows) == len(bodies) else None


def _as_read(kind: pa.DataType) -> pa.DataType:
    """Return the type to request from Arrow's reader: a string for dates, because it would accept numbers for dates."""
    if pa.types.is_date(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_as_read(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _as_read(field.type)) for field in kind])
    return kind


def _with_objects(bodies: pa.BinaryArray, numbers: np.ndarray) -> pa.BinaryArray:
    """Serialise the bodies of these *numbers* again as plain JSON; null for one that is not an object."""
    written = bodies.to_pylist()
    for number in numbers:
        written[number] = _as_object(written[number])
    return pa.array(written, pa.binary())


def _as_object(body: bytes) -> bytes | None:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return orjson.dumps(found) if isinstance(found, dict) else None


def texts_of_nulls(bodies: pa.BinaryArray, rows: pa.StructArray) -> pa.Array:
    """Return the bodies whose *rows* are null, otherwise null; invalid UTF-8 is replaced."""
    wrong = rows.is_null()
    if not pc.any(wrong).as_py():
        return pa.nulls(len(rows), pa.string())
    given = pc.if_else(wrong, bodies, pa.scalar(None, pa.binary())).to_pylist()
    return pa.array([None if body is None else body.decode("utf-8", "replace") for body in given], pa.string())
