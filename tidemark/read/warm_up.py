"""Loading, and at the first time on a machine compiling, of every loop that reading needs, so that no request waits."""

from __future__ import annotations

import numpy as np

from tidemark.format import columns, consume_queue, message, reading
from tidemark.format.check import Checker, Crc
from tidemark.format.index_file import Header, find_cached, find_entries, oldest_entries
from tidemark.format.index_layout import ENTRY_SIZE, SLOT_SIZE
from tidemark.format.queue_groups import number_queues
from tidemark.format.queue_reads import QueueRow, QueueScratch, read_queues
from tidemark.format.record import Record, encode_record
from tidemark.read.messages.body import BodyEncoding
from tidemark.read.messages.message_columns import message_batch
from tidemark.read.messages.message_json import message_json
from tidemark.read.pull import PulledPart
from tidemark.read.records import Records

_NO_FILE = -1  # a descriptor


def warm_up() -> None:
    """Run every loop once, over one record and an empty index."""
    raw = encode_record(Record(topic=b"t", body=b"b", properties=b"TAGS\x01a\x02"))
    buffer = np.frombuffer(raw + raw, np.uint8).copy()
    places, sizes = np.array([0, 0], np.int64), np.array([len(raw), 1], np.int64)
    number_queues(buffer, Checker(crc=Crc.OFF).check(buffer, base_offset=0).requests)
    rows = message.check_records(buffer, places=places, physical_offsets=places, sizes=sizes, topic=b"t", queue_id=0)
    message.check_numbers(buffer, places, rows, places, may_restart=False, fault=0)
    records = Records(buffer, places, rows)
    reading.visible_run(consume_queue.decode_units(consume_queue.PRE_BLANK_UNIT), least=0, limit=0)
    reading.find_end(consume_queue.decode_units(consume_queue.PRE_BLANK_UNIT), limit=0)
    limits = reading.ReadLimits(1, 1, is_first=True, is_whole=False, counts=True)
    blank = consume_queue.decode_units(consume_queue.PRE_BLANK_UNIT)
    reading.choose_units(blank, 0, most_messages=1, most_bytes=1, is_first=True)
    reading.choose(sizes, sizes, np.ones(2, np.bool_), limits)
    reading.plan_reads(places, sizes, file_size=0, gap=0, most_together=0)
    part = PulledPart(records, records.messages(), records.right)
    records.stored_bytes()
    message.copy_records(buffer, 0, places, sizes, buffer.copy(), 0)
    columns.find_properties(columns.columns_of(buffer, records.messages()).fields[columns.Field.PROPERTIES])
    message.find_records(buffer)
    message.read_small_record(_NO_FILE, 0, 0, below=0)
    columns.checked_columns(buffer.copy(), 2, b"t", 0)
    message_batch(part)
    message_json(part, BodyEncoding.AUTO, terminator=b",")
    slots, entries = np.zeros(SLOT_SIZE, np.uint8), np.zeros(ENTRY_SIZE, np.uint8)
    for table in (slots, entries):
        table.flags.writeable = False
    oldest_entries(slots, entries, Header(), key_hash=0, after=-1, below=0, limit=1)
    find_entries(slots, entries, Header(), key_hash=0, begin_ms=0, end_ms=0, limit=1)
    pairs, room = np.empty((0, 2), np.int64), np.empty(1, np.uint8)
    read_queues(
        np.empty((0, len(QueueRow._fields)), np.int64), room, pairs, file_size=1, gap=0, most_messages=1, most_bytes=1,
        scratch=QueueScratch(message.new_array), buffer=room,
    )  # fmt: skip
    find_cached(np.empty((0, 3), np.int64), key_hash=0, after=-1, below=0, least_ms=0, most=1)
