"""Detection of messages of a stretch that reading does not return, and of the reasons.

Damage is never skipped silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.window import Window

from tidemark.archive.digest import Digest, DigestKey
from tidemark.archive.manifest import NOT_STORED, LeftOut
from tidemark.archive.messages import stored_messages
from tidemark.archive.plan import OffsetRange, bounds_now
from tidemark.errors import CorruptMessageError, UnavailableError
from tidemark.read.pull import PullRequest, PullResult, pull
from tidemark.read.store_reader import StoreReader
from tidemark.spark.source.log import BATCH_BYTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.archive.options import ArchiveSource

_SHOWN = 5


def find_left_out(
    spark: SparkSession,
    source: ArchiveSource,
    store: StoreReader,
    stretches: Iterable[OffsetRange],
    digests: Mapping[DigestKey, Digest],
    *,
    tasks: int,
) -> list[LeftOut]:
    """Return the messages of *stretches* that are missing in *digests*, the digests of the messages read."""
    counts: dict[tuple[str, int], int] = {}
    for group, own in digests.items():
        counts[group.topic, group.queue_id] = counts.get((group.topic, group.queue_id), 0) + own.rows
    short = [one for one in stretches if counts.get(one[:2], 0) != one.next - one.first]
    if not short:
        return []
    gaps = _gaps(spark, source, short, tasks=tasks)
    return [left for gap in gaps for left in _explained(store, gap)]


def require_none(left_out: list[LeftOut]) -> None:
    """Raise CorruptMessageError, which names the first of *left_out*, unless it is empty."""
    if not left_out:
        return
    told = [
        f"{one.reason} at queue offset {one.first} of queue {one.queue_id} of {one.topic}" for one in left_out[:_SHOWN]
    ]
    more = f", and {len(left_out) - _SHOWN} more" if len(left_out) > _SHOWN else ""
    first = left_out[0]
    error = CorruptMessageError(
        f"damaged records: {'; '.join(told)}{more}",
        topic=first.topic,
        queue_id=first.queue_id,
        queue_offset=first.first,
        physical_offset=first.physical_offset,
        reason=first.reason,
    )
    error.add_note("--no-fail-on-corruption omits them and lists them in the manifest")
    raise error


def _gaps(spark: SparkSession, source: ArchiveSource, stretches: list[OffsetRange], *, tasks: int) -> list[OffsetRange]:
    """Return the gaps between consecutive messages and at both ends of a stretch."""
    names = ("topic", "queue_id", "queue_offset")
    frame = stored_messages(spark, source, stretches, tasks=tasks, columns=names)
    in_order = Window.partitionBy("topic", "queue_id").orderBy("queue_offset")
    before = f.lag("queue_offset").over(in_order).alias("before")
    behind = f.lead("queue_offset").over(in_order).alias("behind")
    edges = frame.select(*names, before, behind).where("before is null or behind is null or behind - queue_offset > 1")
    at = {(one.topic, one.queue_id): one.first for one in stretches}  # first queue offset not yet accounted for
    gaps: list[OffsetRange] = []
    for topic, queue_id, offset, previous, following in sorted(edges.collect(), key=lambda row: row[:3]):
        if previous is None and offset > at[topic, queue_id]:
            gaps.append(OffsetRange(topic, queue_id, at[topic, queue_id], offset))
        if following is not None and following > offset + 1:
            gaps.append(OffsetRange(topic, queue_id, offset + 1, following))
        at[topic, queue_id] = offset + 1 if following is None else following
    gaps += [one._replace(first=at[one[:2]]) for one in stretches if at[one[:2]] < one.next]
    return sorted(gaps)


def _explained(store: StoreReader, gap: OffsetRange) -> Iterator[LeftOut]:
    """Yield the damaged records that reading reports; the rest of the gap is not stored."""
    at = gap.first
    for result in _pulls(store, gap):
        reader = store.queue(gap.topic, gap.queue_id)
        for skip in result.skipped:
            held = reader.offsets_of(reader.locate(skip.queue_offset, result.bounds.units))
            first, following = max(held.start, at), min(held.stop, gap.next)
            if first >= following:
                continue
            if first > at:
                yield LeftOut(topic=gap.topic, queue_id=gap.queue_id, first=at, next=first, reason=NOT_STORED)
            yield LeftOut(
                topic=gap.topic,
                queue_id=gap.queue_id,
                first=first,
                next=following,
                reason=skip.reason,
                physical_offset=skip.physical_offset,
            )
            at = following
    if at < gap.next:
        yield LeftOut(topic=gap.topic, queue_id=gap.queue_id, first=at, next=gap.next, reason=NOT_STORED)


def _pulls(store: StoreReader, gap: OffsetRange) -> Iterator[PullResult]:
    """Yield the results of pulls over the gap. Raises UnavailableError if they return messages now."""
    reader = store.queue(gap.topic, gap.queue_id)
    at = gap.first
    while at < gap.next:
        bounds = bounds_now(store, gap.topic, gap.queue_id)
        units = bounds.units._replace(end=reader.locate(gap.next - 1, bounds.units) + 1)
        result = pull(reader, store.log, bounds._replace(units=units), PullRequest(at, gap.next - at, BATCH_BYTES))
        for part in result.parts:
            offsets = part.messages["queue_offset"]
            if ((offsets >= gap.first) & (offsets < gap.next)).any():
                raise UnavailableError(
                    f"queue {gap.queue_id} of {gap.topic} has messages that could not be read before: run it again",
                    queue_offset=at,
                )
        yield result
        at = max(result.next_offset, at + 1)
