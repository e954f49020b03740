"""MultiPathMappedFileQueueTest: a CommitLog over several folders (format.md §1), as files and through all services."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.writer.log import open_store as writer_store
from tests.builders import wire_batch
from tests.integration.writer.harness import RunningWriter
from tests.pipeline_runs import build, plan_of
from tests.query_server import serve_query
from tidemark.errors import CorruptStoreError, StoreContradictionError
from tidemark.read.file_run import FileRun
from tidemark.store.log_folders import LogFolders
from tidemark.store.mapped_file_queue import MappedFileQueue, file_name
from tidemark.store.multi_path_mapped_file_queue import MultiPathMappedFileQueue, log_size_on_disk, open_log
from tidemark.store.storage import DiskStorage

SIZE = 1024
SEGMENT_SIZE = 8192


def opened(root: Path, paths: str, read_only: str = "", full: str = "") -> MappedFileQueue:
    """Open the log in these folders below *root* for writing."""
    folders = LogFolders.parse(root, paths, read_only)
    return open_log(folders, SIZE, DiskStorage(), is_full=lambda folder: folder.name in full.split(","))


def names_in(root: Path) -> dict[str, list[int]]:
    """Return the numbers of the files in each folder."""
    return {
        folder.name: [int(path.name) // SIZE for path in sorted(folder.iterdir())] for folder in sorted(root.iterdir())
    }


def test_mp1_file_i_is_created_in_folder_i_mod_3(tmp_path: Path) -> None:
    """Folders are in the order of their names, whatever the order of the setting."""
    log = opened(tmp_path, "c,a,b")
    log.write(0, bytes(range(256)) * 4 * 7)
    assert isinstance(log, MultiPathMappedFileQueue)
    assert names_in(tmp_path) == {"a": [0, 3, 6], "b": [1, 4], "c": [2, 5]}
    assert [log.read(start, SIZE) for start in log.starts] == [bytes(range(256)) * 4] * 7
    log.close()


def test_mp2_writable_and_read_only_folders_are_one_address_space(tmp_path: Path) -> None:
    """1,024 files are in three folders; the next one goes to a writable one."""
    for name in "abc":
        (tmp_path / name).mkdir()
    for number in range(1024):
        path = tmp_path / "abc"[number % 3] / file_name(number * SIZE)
        path.write_bytes(number.to_bytes(4, "big").ljust(SIZE, b"\0"))
    again = opened(tmp_path, "b", "a,c")
    assert again.starts == [number * SIZE for number in range(1024)]
    assert [int.from_bytes(again.read(start, 4), "big") for start in again.starts] == list(range(1024))
    again.create_file(1024 * SIZE)
    assert again.folder_of(1024 * SIZE) == tmp_path / "b"
    again.close()
    run = FileRun(*(tmp_path / name for name in "abc"))
    assert list(run.listing().starts) == again.starts
    assert [int.from_bytes(run.read(start, 4), "big") for start in run.known.starts[:-1]] == list(range(1024))


def test_mp3_new_files_go_to_a_reduced_list_of_folders(tmp_path: Path) -> None:
    """After the list is reduced to a and b, files go to i mod 2; files in c are still read."""
    log = opened(tmp_path, "a,b,c")
    log.write(0, bytes(3 * SIZE))
    log.close()
    log = opened(tmp_path, "a,b", "c")
    log.write(3 * SIZE, bytes(3 * SIZE))
    assert names_in(tmp_path) == {"a": [0, 4], "b": [1, 3, 5], "c": [2]}
    assert log.covers(2 * SIZE)
    log.close()


def test_mp4_a_full_folder_gets_no_files(tmp_path: Path) -> None:
    """With b full, file 3 goes to c and file 4 to a; when all are full, they are used again."""
    log = opened(tmp_path, "a,b,c")
    log.write(0, bytes(3 * SIZE))
    log.close()
    log = opened(tmp_path, "a,b,c", full="b")
    log.write(3 * SIZE, bytes(2 * SIZE))
    assert names_in(tmp_path) == {"a": [0, 4], "b": [1], "c": [2, 3]}
    log.close()
    log = opened(tmp_path, "a,b,c", full="a,b,c")
    log.write(5 * SIZE, bytes(SIZE))
    assert names_in(tmp_path)["c"] == [2, 3, 5]
    log.close()


def test_mp1_one_folder_is_the_plain_queue(tmp_path: Path) -> None:
    """Nothing is merged."""
    assert type(opened(tmp_path, "")) is MappedFileQueue
    assert LogFolders.parse(tmp_path, "", "") == LogFolders((tmp_path / "commitlog",))
    assert set(LogFolders.parse(tmp_path, " /x/b , a,", "").all) == {Path("/x/b"), tmp_path / "a"}
    with pytest.raises(ValueError, match="read-only"):
        LogFolders.parse(tmp_path, "a,b", "b,a")


def test_mp2_a_file_in_two_folders_is_refused(tmp_path: Path) -> None:
    """It is unknown which of them is the log's."""
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / file_name(0)).write_bytes(bytes(SIZE))
    with pytest.raises(CorruptStoreError, match="another folder"):
        opened(tmp_path, "a,b")
    with pytest.raises(CorruptStoreError, match="another folder"):
        FileRun(tmp_path / "a", tmp_path / "b")


def test_mp2_files_created_and_deleted_by_others_are_noticed_in_every_folder(tmp_path: Path) -> None:
    """A reader lists the folder again when a file is missing, and closes deleted ones."""
    writer = opened(tmp_path, "a,b")
    writer.write(0, b"0" * SIZE)
    reader = opened(tmp_path, "a,b")
    run = FileRun(tmp_path / "a", tmp_path / "b")
    writer.write(SIZE, b"1" * SIZE)
    assert run.read(SIZE, 1) == b"1"
    assert run.listing().starts == (0, SIZE)
    reader.refresh()
    assert reader.read(SIZE, 1) == b"1"
    writer.delete_file(0)
    assert names_in(tmp_path) == {"a": [], "b": [1]}
    reader.refresh()
    assert (run.listing().starts, reader.starts) == ((SIZE,), [SIZE])
    assert log_size_on_disk(LogFolders.parse(tmp_path, "a,b", "")) == SIZE
    writer.close()
    reader.close()


@pytest.mark.integration
def test_mp1_mp2_mp4_messages_are_written_indexed_and_pulled_over_several_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Appends cycle through the folders; after a restart with one read-only and one full folder, all is there."""
    root = tmp_path / "store"
    bodies: list[str] = []

    def append(writer: RunningWriter, count: int) -> None:
        for number in range(len(bodies), len(bodies) + count):
            bodies.append(f"message {number} " + "x" * 1000)
            answer = writer.append(packed=wire_batch((bodies[-1].encode(), b"", 0)))
            assert answer.queue_offset == number

    first: dict[str, Any] = {
        "commit_log_paths": f"one,{tmp_path}/two,three",
        "commit_log_segment_size_bytes": SEGMENT_SIZE,
    }
    with RunningWriter(root, **first) as writer:
        append(writer, 40)
    assert [len(list((root / name).iterdir())) > 1 for name in ("one", "three", tmp_path / "two")] == [True] * 3
    assert not (root / "commitlog").exists()

    monkeypatch.setattr(writer_store, "free_bytes", lambda path: 0 if path.name == "four" else 1 << 40)
    before = sorted((root / "one").iterdir())
    second = first | {"commit_log_paths": f"three,{tmp_path}/two,four", "commit_log_read_only_paths": "one"}
    with RunningWriter(root, **second, min_free_disk_bytes=1) as writer:
        append(writer, 40)
        assert writer.info().committed_offset > 10 * SEGMENT_SIZE
    assert sorted((root / "one").iterdir()) == before
    assert list((root / "four").iterdir()) == []

    paths = {name: second[name] for name in ("commit_log_paths", "commit_log_read_only_paths")}
    assert sum(row.records for row in build(plan_of(root, index_slots=10, **paths))[:-1]) == 80
    with serve_query(root, index_slots=10, index_entries=40, **paths) as client:
        answer = client.get("/v1/topics/t/queues/0/messages?offset=0&max_messages=100&body_encoding=utf8").json()
        assert [message["body"] for message in answer["messages"]] == bodies
        place = answer["messages"][50]["physical_offset"]
        assert client.get(f"/v1/messages/at/{place}").json()["messages"][0]["queue_offset"] == 50


@pytest.mark.integration
def test_mp2_a_log_outside_the_configured_folders_is_not_started_anew(tmp_path: Path) -> None:
    """Numbering would restart at 0; so a writer whose setting misses the files refuses, and changes nothing."""
    with RunningWriter(tmp_path, commit_log_paths="a,b") as writer:
        writer.append(packed=wire_batch((b"x", b"", 0)))
    with pytest.raises(StoreContradictionError, match="commit_log_paths"), RunningWriter(tmp_path):
        pass
    with RunningWriter(tmp_path, commit_log_paths="b,a") as writer:
        assert writer.append(packed=wire_batch((b"y", b"", 0))).queue_offset == 1
