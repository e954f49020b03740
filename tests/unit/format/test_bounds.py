"""The compiled loops read and write only within their buffers, checked by numba."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.needs_numba import needs_numba

pytestmark = needs_numba

ROOT = Path(__file__).parents[3]
PROGRAM = """
import random
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property import strategies
from tidemark.errors import BatchMalformedError
from tidemark.format import index_file, unique_keys, wire_batch
from tidemark.format.check import Checker, Crc, find_next_record
from tidemark.format.kernels import properties, text

settings.register_profile("compiling", deadline=None, derandomize=True)
settings.load_profile("compiling")
few = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def u8(data):
    return np.frombuffer(data, np.uint8).copy()


@few
@given(st.one_of(strategies.damaged_logs(base_offset=64), st.binary(max_size=200)), st.integers(0, 3))
def walk(data, extra):
    buffer = u8(data)
    for crc in Crc:
        for file_end in (None, len(data), len(data) + extra):
            for start in {0, min(extra, len(data))}:
                result = Checker(crc=crc, shard=extra % 2, shards=2).check(
                    buffer, base_offset=64, start=start, file_end=file_end
                )
                index_file.hash_keys(buffer, result.requests)
                unique_keys.hash_unique_keys(buffer, result.requests)
            find_next_record(buffer, base_offset=64, file_end=file_end)


@few
@given(st.one_of(strategies.damaged_wire_batches(), st.binary(max_size=100)))
def scan(data):
    try:
        wire_batch.scan(u8(data))
    except BatchMalformedError:
        pass


@few
@given(st.one_of(strategies.property_bytes(), st.binary(max_size=60)))
def names(data):
    properties.scan_properties(u8(data), 0, len(data), np.empty((properties.N_NAMES, 2), np.int64))
    text.text_hash(u8(data), 0, len(data), 0)


@few
@given(st.binary(max_size=60), st.integers(1, 5), st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**31 - 1))
def find(data, slots, count, key_hash):
    table = np.frombuffer(random.Random(key_hash).randbytes(4 * slots), np.uint8) & 3
    entries = u8(data)
    header = index_file.Header(index_count=max(count, 1))
    index_file.find_entries(table, entries, header, key_hash=key_hash, begin_ms=0, end_ms=2**62, limit=9)


for check in (walk, scan, names, find):
    check()
from tests.property import test_index_file, test_pack, test_reading, test_wire_batch  # with that profile
test_reading.test_units_are_visible_while_they_ascend_below_the_limit()
test_reading.test_as_many_records_are_read_as_the_limits_allow()
test_reading.test_adjacent_records_are_read_together()
test_index_file.test_slots_written_in_runs_equal_the_set_slots()
test_pack.test_packed_batches_equal_the_plain_encoding()
test_wire_batch.test_encoded_records_equal_those_of_encode_record()
long_topic = u8(strategies.builders.record_bytes(topic=b"t" * 32767, magic=strategies.MAGIC_V2))
Checker(shards=2).check(long_topic, base_offset=0)
try:  # shows that the checks are active
    properties.scan_properties(np.zeros(4, np.uint8), 2, 6, np.empty((properties.N_NAMES, 2), np.int64))
except IndexError:
    print("within bounds")
"""


def test_hostile_bytes_never_cause_reads_outside_the_buffers(tmp_path: Path) -> None:
    """Arbitrary and almost valid bytes are given to every loop that reads external data."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={
            **os.environ,
            "NUMBA_BOUNDSCHECK": "1",
            "NUMBA_CACHE_DIR": str(tmp_path),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path),
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "within bounds\n"), done.stderr
