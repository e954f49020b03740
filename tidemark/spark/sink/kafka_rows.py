"""Conversion of rows with the columns of Spark's Kafka sink to the sink's own columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.errors import PropertiesIllegalError
from tidemark.format.properties import KEY_SEPARATOR, KEYS, TAGS
from tidemark.spark.sink.sink_rows import PARTITION


def own_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return body, topic, tag, keys, properties and PARTITION, as far as *batch* has Kafka's columns for them.

    Raises PropertiesIllegalError for keys and headers that are not text, and for a header that occurs twice.
    """
    given = {field.name: batch.column(field.name) for field in batch.schema}
    own = {"body": given["value"]} | {name: given[name] for name in ("topic", PARTITION) if name in given}
    keys = pa.nulls(batch.num_rows, pa.string())
    if "key" in given:
        keys = _text(given["key"], "key")
        _require_single(keys)
    if "headers" in given:
        headers = _Headers(given["headers"])
        own |= {"tag": headers.of(TAGS), "properties": headers.others()}
        keys = pc.coalesce(headers.of(KEYS), keys)
    keys = pc.if_else(pc.equal(keys, ""), None, keys)  # an empty key is none
    return pa.RecordBatch.from_pydict(own | {"keys": pc.split_pattern(keys, KEY_SEPARATOR)})


def _require_single(keys: pa.Array) -> None:
    wrong = keys.filter(pc.match_substring(keys, KEY_SEPARATOR))
    if len(wrong):
        raise PropertiesIllegalError(
            f"the key {wrong[0].as_py()!r} contains a space; several keys are given in a header {KEYS}"
        )


class _Headers:
    """Headers as flat arrays. rows: the row of each header, ascending."""

    def __init__(self, headers: pa.ListArray) -> None:
        self._count = len(headers)
        self._rows = pc.list_parent_indices(headers).to_numpy()
        entries = pc.list_flatten(headers)
        self._names = entries.field("key")
        self._values = entries.field("value")
        self._require_distinct()

    def _require_distinct(self) -> None:
        counted = (
            pa.table({"row": self._rows, "name": self._names}).group_by(["row", "name"]).aggregate([([], "count_all")])
        )
        twice = counted.filter(pc.greater(counted["count_all"], 1))
        if twice.num_rows:
            raise PropertiesIllegalError(
                f"a row has several headers {twice['name'][0].as_py()!r}; a message has one value for a name"
            )

    def of(self, name: str) -> pa.Array:
        """Return the value of header *name* in each row, or null."""
        places = np.flatnonzero(pc.equal(self._names, name).to_numpy(zero_copy_only=False))
        at = np.full(self._count, -1)
        at[self._rows[places]] = np.arange(len(places))
        values = _text(self._values.take(pa.array(places)), f"header {name}")
        return values.take(pa.array(at, mask=at < 0))

    def others(self) -> pa.MapArray:
        """Return all other headers as properties."""
        kept = pc.invert(pc.is_in(self._names, pa.array([TAGS, KEYS])))
        counts = np.bincount(self._rows[kept.to_numpy(zero_copy_only=False)], minlength=self._count)
        ends = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
        return pa.MapArray.from_arrays(ends, self._names.filter(kept), _text(self._values.filter(kept), "headers"))


def _text(values: pa.Array, what: str) -> pa.Array:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        raise PropertiesIllegalError(f"{what}: must be UTF-8 text, as in Tidemark's keys and properties") from None
