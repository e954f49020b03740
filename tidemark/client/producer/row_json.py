"""Converts rows of a table into strict JSON objects, column by column in Arrow's compiled code.

A value is written exactly, or its row is refused:

- integers, decimals and floats: exact numbers (517.0 is written 517, as JSON has one kind of number); NaN and
  infinities have no JSON form and are refused
- text: escaped as JSON requires; binary: base64 text, as Spark's to_json writes it
- timestamps: ISO 8601 with all digits of their unit (none if the fraction is zero), and the offset of their zone;
  without a zone, no offset. Years outside 0001 to 9999 are refused
- dates and times of day: ISO 8601; durations: ISO 8601 seconds, such as PT1.500S
- lists: arrays; structs and maps with text keys: objects. A null is null at every depth
- dictionary- and run-end-encoded values, and extension types: their decoded values
"""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Iterable

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.errors import ArgumentIllegalError

_TEXT = pa.large_string()
_CONTROL = r"[\x00-\x1f]"
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FOUR_DIGIT_YEAR = r"^\d{4}-"


class _Refused(Exception):  # noqa: N818 - it never leaves this module
    """A value without a JSON form. at: its index in the converted array; path: its path in a nested value."""

    def __init__(self, at: int, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.at = at
        self.reason = reason
        self.path = path


def json_rows(table: pa.Table, *, first_row: int = 0) -> pa.LargeStringArray:
    """Return one JSON object for each row, with the columns in the table's order.

    Raises ArgumentIllegalError (facts: column; row, counted from *first_row*) for a value or type without a JSON form,
    or for two columns with the same name.
    """
    if table.num_columns == 0:
        return pa.array(["{}"] * table.num_rows, _TEXT)
    _require_distinct(table.column_names, "columns of the table")
    parts = []
    for number, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        try:
            values = _json_values(_one_chunk(column))
        except _Refused as refused:
            row = first_row + refused.at
            raise ArgumentIllegalError(
                f"row {row}, column {name + refused.path!r}: {refused.reason}", row=row, column=name
            ) from None
        parts += [_text(f"{',' if number else '{'}{orjson.dumps(name).decode()}:"), values]
    return pc.binary_join_element_wise(*parts, _text("}"), _text(""))


def _json_values(array: pa.Array) -> pa.LargeStringArray:
    """Return each value of *array* as JSON, nulls as null. Raises _Refused, ArgumentIllegalError."""
    return pc.fill_null(_present_values(array), "null")


def _present_values(array: pa.Array) -> pa.LargeStringArray:
    """Return each value of *array* as JSON; nulls stay null."""
    kind = array.type
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _present_values(array.storage)
    if types.is_dictionary(kind):
        return _present_values(array.dictionary_decode())
    if types.is_run_end_encoded(kind):
        return _present_values(pc.run_end_decode(array))
    if types.is_null(kind):
        return pa.nulls(len(array), _TEXT)
    if types.is_boolean(kind) or types.is_integer(kind):
        return pc.cast(array, _TEXT)
    if types.is_floating(kind):
        return _floats(array)
    if types.is_decimal(kind):
        return _decimals(array)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return _quoted(pc.cast(array, _TEXT))
    if _is_binary(kind):
        encoded = [None if value is None else f'"{b64encode(value).decode()}"' for value in array.to_pylist()]
        return pa.array(encoded, _TEXT)
    if types.is_temporal(kind):
        return _times(array)
    return _nested(array)


def _is_binary(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
        or types.is_binary_view(kind)
    )


# ── numbers and text ────────────────────────────────────────────────────────────────────────────────────────────────


def _floats(array: pa.Array) -> pa.LargeStringArray:
    if pa.types.is_float16(array.type):
        array = pc.cast(array, pa.float32())
    _require(pc.is_finite(array), array, "{} has no JSON form: use null or text instead")
    return pc.cast(array, _TEXT)


def _decimals(array: pa.Array) -> pa.LargeStringArray:
    if array.type.bit_width < 128:
        array = pc.cast(array, pa.decimal128(array.type.precision, array.type.scale))
    return pc.cast(array, _TEXT)


def _quoted(column: pa.LargeStringArray) -> pa.LargeStringArray:
    if pc.any(pc.match_substring_regex(column, _CONTROL)).as_py():
        return pa.array([None if text is None else orjson.dumps(text).decode() for text in column.to_pylist()], _TEXT)
    escaped = pc.replace_substring(pc.replace_substring(column, "\\", "\\\\"), '"', '\\"')
    return _wrapped('"', escaped, '"')


# ── times ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _times(array: pa.Array) -> pa.LargeStringArray:
    kind = array.type
    if pa.types.is_duration(kind):
        return _durations(array)
    if pa.types.is_timestamp(kind):
        return _wrapped('"', _timestamps(array), '"')
    if pa.types.is_date(kind):
        texts = pc.cast(pc.cast(array, pa.date32()), _TEXT)
        _require(pc.match_substring_regex(texts, _FOUR_DIGIT_YEAR), texts, "{} is not within the years 0001 to 9999")
        return _wrapped('"', texts, '"')
    if pa.types.is_time(kind):
        return _wrapped('"', pc.cast(array, _TEXT), '"')
    raise _no_form(kind)


def _timestamps(array: pa.Array) -> pa.LargeStringArray:
    zone = "%z" if array.type.tz is not None else ""
    texts = pc.cast(pc.strftime(array, f"%Y-%m-%dT%H:%M:%S{zone}"), _TEXT)
    _require(pc.match_substring_regex(texts, _FOUR_DIGIT_YEAR), texts, "{} is not within the years 0001 to 9999")
    if zone:
        texts = pc.replace_substring_regex(texts, r"(\d\d)$", r":\1")
    return pc.replace_substring_regex(texts, r"\.0+([+-]\d\d:\d\d)?$", r"\1")


def _durations(array: pa.Array) -> pa.LargeStringArray:
    per_second = _PER_SECOND[array.type.unit]
    ticks = pc.cast(array, pa.int64())
    seconds = pc.divide(ticks, per_second)  # towards zero
    rest = pc.abs(pc.subtract(ticks, pc.multiply(seconds, per_second)))
    sign = pc.if_else(pc.less(ticks, 0), _text('"-PT'), _text('"PT'))
    parts = [sign, pc.cast(pc.abs(seconds), _TEXT)]
    if per_second > 1:
        digits = len(str(per_second)) - 1
        parts += [_text("."), pc.utf8_lpad(pc.cast(rest, _TEXT), digits, "0")]
    return pc.binary_join_element_wise(*parts, _text('S"'), _text(""))


# ── nested values ───────────────────────────────────────────────────────────────────────────────────────────────────


def _nested(array: pa.Array) -> pa.LargeStringArray:
    kind = array.type
    types = pa.types
    if types.is_struct(kind):
        return _structs(array)
    if types.is_map(kind):
        return _maps(array)
    if types.is_fixed_size_list(kind) or types.is_list_view(kind) or types.is_large_list_view(kind):
        array = array.cast(pa.large_list(kind.value_type))
    if types.is_list(array.type) or types.is_large_list(array.type):
        values = _child(array.values, array.offsets, "[]")
        return _where_present(array, _wrapped("[", _joined(array.offsets, values), "]"))
    raise _no_form(kind)


def _structs(array: pa.StructArray) -> pa.LargeStringArray:
    names = [field.name for field in array.type]
    _require_distinct(names, "fields of a struct")
    if not names:
        return _where_present(array, pa.array(["{}"] * len(array), _TEXT))
    parts = []
    for number, (name, field) in enumerate(zip(names, array.flatten(), strict=True)):
        try:
            values = _json_values(field)
        except _Refused as refused:
            raise _Refused(refused.at, refused.reason, f".{name}{refused.path}") from None
        parts += [_text(f"{',' if number else '{'}{orjson.dumps(name).decode()}:"), values]
    return _where_present(array, pc.binary_join_element_wise(*parts, _text("}"), _text("")))


def _maps(array: pa.MapArray) -> pa.LargeStringArray:
    if not pa.types.is_string(array.type.key_type) and not pa.types.is_large_string(array.type.key_type):
        raise ArgumentIllegalError(
            f"a map with {array.type.key_type} keys has no JSON form: its keys must be text", argument="table"
        )
    names = _child(array.keys, array.offsets, "")
    values = _child(array.items, array.offsets, "{}")
    entries = pc.binary_join_element_wise(names, values, _text(":"))
    return _where_present(array, _wrapped("{", _joined(array.offsets, entries), "}"))


def _child(values: pa.Array, offsets: pa.Array, path: str) -> pa.LargeStringArray:
    """Return *values* as JSON; a refusal names the index of the list that contains the value."""
    first, last = (offsets[0].as_py(), offsets[-1].as_py()) if len(offsets) > 1 else (0, 0)
    try:
        used = _json_values(values.slice(first, last - first))
    except _Refused as refused:
        at = int(np.searchsorted(offsets.to_numpy(), first + refused.at, side="right")) - 1
        raise _Refused(at, refused.reason, path + refused.path) from None
    return used


def _joined(offsets: pa.Array, values: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return the *values* of each list, with commas between them."""
    starts = pc.cast(offsets, pa.int64())
    if len(starts) <= 1:
        return pa.array([], _TEXT)
    return pc.binary_join(pa.LargeListArray.from_arrays(pc.subtract(starts, starts[0]), values), _text(","))


def _where_present(array: pa.Array, texts: pa.LargeStringArray) -> pa.LargeStringArray:
    return pc.if_else(array.is_valid(), texts, pa.scalar(None, _TEXT))


# ── shared functions ────────────────────────────────────────────────────────────────────────────────────────────────


def _require(allowed: pa.BooleanArray, values: pa.Array, reason: str) -> None:
    """Raise _Refused for the first value that is not *allowed*; nulls are allowed."""
    at = pc.index(pc.fill_null(allowed, True), False).as_py()
    if at >= 0:
        raise _Refused(at, reason.format(values[at].as_py()))


def _require_distinct(names: Iterable[str], what: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ArgumentIllegalError(f"two {what} have the name {twice[0]!r}: names in a JSON object are unique")


def _no_form(kind: pa.DataType) -> ArgumentIllegalError:
    return ArgumentIllegalError(f"values of type {kind} have no JSON form: cast the column, or omit it")


def _wrapped(before: str, texts: pa.LargeStringArray, after: str) -> pa.LargeStringArray:
    return pc.binary_join_element_wise(_text(before), texts, _text(after), _text(""))


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _text(value: str) -> pa.Scalar:
    return pa.scalar(value, _TEXT)
