"""Messages by key and unique key."""

from __future__ import annotations

import pytest

from tests.built_store import BuiltStore, java_hash
from tidemark.errors import StoreContradictionError
from tidemark.read.lookup.index_reader import IndexReader
from tidemark.read.lookup.key_lookup import KeyQuery, find_by_key, find_by_key_as_broker
from tidemark.read.store_reader import StoreReader


def pages(built: BuiltStore, query: KeyQuery, *, as_broker: bool = False) -> list[list[int]]:
    """Return the physical offsets of all pages."""
    reader = StoreReader(built.root)
    index = IndexReader(reader.paths.index)
    found: list[list[int]] = []
    while True:
        answer = (find_by_key_as_broker if as_broker else find_by_key)(reader, index, reader.watermark(), query)
        found.append([int(place) for part in answer.parts for place in part.messages["physical_offset"]])
        if answer.after is None:
            return found
        query = query._replace(after=answer.after)


def places(built: BuiltStore, query: KeyQuery) -> list[int]:
    return [place for page in pages(built, query) for place in page]


@pytest.fixture
def many(built: BuiltStore) -> dict[str, list[int]]:
    """Write 200 messages with five keys over several index files and both queues; return the positions by key."""
    by_key: dict[str, list[int]] = {}
    for number in range(200):
        key = f"k{number % 5}"
        record = built.append("orders", b"x", {"UNIQ_KEY": f"u{number}", "KEYS": f"{key} all"}, queue_id=number % 2)
        by_key.setdefault(key, []).append(record.physical_offset)
        by_key.setdefault("all", []).append(record.physical_offset)
        by_key[f"u{number}"] = [record.physical_offset]
    built.publish()
    return by_key


@pytest.mark.parametrize("limit", [1, 3, 7, 1000])
def test_pages_of_a_key_lookup_hold_all_messages_in_log_order(
    built: BuiltStore, many: dict[str, list[int]], limit: int
) -> None:
    """No page exceeds the limit; no message is repeated or omitted."""
    for key in ("k0", "k4", "all"):
        found = pages(built, KeyQuery("orders", key, limit=limit))
        assert [place for page in found for place in page] == many[key]
        assert max(map(len, found)) <= limit


@pytest.mark.parametrize("most", [1, 150, 1_000])
def test_a_page_of_a_key_lookup_is_limited_by_bytes(built: BuiltStore, many: dict[str, list[int]], most: int) -> None:
    """The limit holds for any number of messages; the first message is read whatever its size."""
    size = many["all"][1] - many["all"][0]
    found = pages(built, KeyQuery("orders", "all", limit=1000, max_bytes=most))
    assert [place for page in found for place in page] == many["all"]
    assert max(map(len, found)) <= max(1, most // (size - 10) + 1)
    assert len(found) > len(many["all"]) * (size - 10) // (most + size) - 1


def test_a_unique_key_finds_its_message(built: BuiltStore, many: dict[str, list[int]]) -> None:
    """A unique key is not found as a key, nor a key as a unique key, nor either in another topic."""
    assert places(built, KeyQuery("orders", "u77", unique=True)) == many["u77"]
    assert places(built, KeyQuery("orders", "u77")) == []
    assert places(built, KeyQuery("orders", "k1", unique=True)) == []
    assert places(built, KeyQuery("batches", "k1")) == []


def test_a_key_lookup_filters_by_exact_store_times(built: BuiltStore) -> None:
    """The index has seconds, which may be too late for the first entry of a file; the records decide."""
    records = [built.append("orders", b"x", {"KEYS": "k"}, at_ms=1_000_000 + 400 * number) for number in range(150)]
    built.publish()
    for first, last in ((0, 149), (1, 148), (70, 70), (63, 66)):
        query = KeyQuery(
            "orders", "k", from_ms=records[first].store_timestamp, to_ms=records[last].store_timestamp, limit=1000
        )
        assert places(built, query) == [record.physical_offset for record in records[first : last + 1]]


def test_keys_with_equal_hashes_are_distinguished(built: BuiltStore) -> None:
    """Aa and BB collide: most hits of a page are wrong, and the search still continues."""
    assert java_hash("orders#Aa") == java_hash("orders#BB")
    right = []
    for number in range(100):
        record = built.append("orders", b"x", {"KEYS": "BB" if number % 10 == 9 else "Aa"})
        right += [record.physical_offset] if number % 10 == 9 else []
    built.publish()
    assert places(built, KeyQuery("orders", "BB", limit=3)) == right
    few = pages(built, KeyQuery("orders", "BB", limit=3, max_candidates=5))
    assert [place for page in few for place in page] == right
    assert [] in few  # a page may be empty and still have a cursor


def test_a_key_lookup_returns_only_visible_records(built: BuiltStore) -> None:
    """The index may be ahead of the other shards and may still contain deleted records."""
    records = [built.append("orders", bytes(3000), {"KEYS": "k"}) for _ in range(60)]
    built.publish(records[50].physical_offset)
    (built.root / "commitlog" / f"{0:020d}").unlink()
    expected = [one.physical_offset for one in records[:50] if one.physical_offset >= built.log_file_size]
    assert places(built, KeyQuery("orders", "k", limit=1000)) == expected


def test_a_record_that_is_indexed_twice_is_returned_once(built: BuiltStore) -> None:
    """A restart may index a record twice (docs/format.md §6)."""
    record = built.append("orders", b"x", {"KEYS": "k"})
    built.index("orders", "k", record)
    built.publish()
    assert places(built, KeyQuery("orders", "k")) == [record.physical_offset]


def test_keys_of_an_inner_batch_find_its_messages(built: BuiltStore) -> None:
    """The wrapper's keys find those elements that carry them; its unique key finds all of them."""
    elements = [(b"a", {"KEYS": "ka", "UNIQ_KEY": "ua"}, 0), (b"b", {"KEYS": "kb", "UNIQ_KEY": "ub"}, 0)]
    built.append_batch("batches", elements, {"UNIQ_KEY": "wrapper", "KEYS": "ka kb"})
    built.publish()
    assert len(places(built, KeyQuery("batches", "kb"))) == 1
    assert len(places(built, KeyQuery("batches", "wrapper", unique=True))) == 2
    assert places(built, KeyQuery("batches", "ub", unique=True)) == []  # the index does not have it


def test_a_lookup_as_broker_returns_the_newest_64_hits(built: BuiltStore, many: dict[str, list[int]]) -> None:
    """The newest ones count, in the order of the log (docs/format.md §14)."""
    assert pages(built, KeyQuery("orders", "all", limit=1000), as_broker=True) == [many["all"][-64:]]


def test_a_slot_newer_than_the_header_hides_no_entry(built: BuiltStore, many: dict[str, list[int]]) -> None:
    """A writer stores entries, then slots, then the header: a reader in between finds the whole chain."""
    newest = max((built.root / "index").iterdir())
    data = bytearray(newest.read_bytes())
    data[36:40] = (1).to_bytes(4, "big")
    newest.write_bytes(data)
    assert places(built, KeyQuery("orders", "all", limit=1000)) == many["all"]


def test_index_sizes_that_contradict_the_file_are_refused(built: BuiltStore, many: dict[str, list[int]]) -> None:
    """The numbers of slots and entries do not match the file's size."""
    index = IndexReader(built.root / "index", slots=7, entries=64)
    with pytest.raises(StoreContradictionError):
        index.tables()
