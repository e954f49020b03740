"""Encoding of the units of a ConsumeQueue, group by group, in a compiled loop (docs/format.md §4)."""

from __future__ import annotations

from tidemark.format.kernels.compiled import compiled
from tidemark.format.kernels.integers import put_i4, put_i8
from tidemark.format.kernels.positions import UNIT_MESSAGE_SIZE, UNIT_PHYSICAL_OFFSET, UNIT_SIZE, UNIT_TAGS_CODE


@compiled
def encode_groups(rows, order, edges, units, heads):  # type: ignore[no-untyped-def]
    """Encode the ConsumeQueue units of *rows* in *order*, and describe each group order[edges[i] : edges[i + 1]].

    Each group is of one queue and not empty.

    units  uint8, one unit per row; twin: `consume_queue.encode_units`
    heads  int64, seven numbers per group: position and end of the topic, queue id, first queue offset, begin and end of
           its units, and 1 if no row has a fault and the queue offsets ascend by one, otherwise 0
    """
    for i in range(edges.size - 1):
        first, end = edges[i], edges[i + 1]
        head = rows[order[first]]
        is_plain = 1
        for k in range(first, end):
            row = rows[order[k]]
            if row.fault != 0 or row.queue_offset != head.queue_offset + (k - first):
                is_plain = 0
            put_i8(units, UNIT_SIZE * k + UNIT_PHYSICAL_OFFSET, row.physical_offset)
            put_i4(units, UNIT_SIZE * k + UNIT_MESSAGE_SIZE, row.message_size)
            put_i8(units, UNIT_SIZE * k + UNIT_TAGS_CODE, row.tags_code)
        heads[i, 0], heads[i, 1] = head.topic_at, head.topic_at + head.topic_length
        heads[i, 2], heads[i, 3] = head.queue_id, head.queue_offset
        heads[i, 4], heads[i, 5] = UNIT_SIZE * first, UNIT_SIZE * end
        heads[i, 6] = is_plain
