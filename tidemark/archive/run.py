"""One run: new messages are read, written, read back and compared; only then do they become part of the archive.

store ─▶ digest ─▶ layout ─▶ files in staging/ ─▶ their digest = the store's? ─▶ data/ ─▶ manifest.json
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tidemark.archive.folder import STAGING, archive_in, held_folder, new_run, publish, remove_unnamed
from tidemark.archive.manifest import (
    EXPIRED,
    ArchivedDamage,
    ArchivedFile,
    ArchivedQueue,
    ArchiveManifest,
    LeftOut,
    StoreIdentity,
    save_manifest,
)
from tidemark.archive.options import ArchiveOptions, ArchiveSource
from tidemark.archive.plan import OffsetRange, Plan, make_plan
from tidemark.archive.progress import Progress, StepProgress, no_progress
from tidemark.errors import ArchiveDiffersError, OffsetTooSmallError
from tidemark.index.ledger import read_ledger
from tidemark.read.store_reader import StoreReader
from tidemark.store.originals.format_file import require_known_format
from tidemark.store.storage import DiskStorage
from tidemark.version import program_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from tidemark.archive.digest import Digest, DigestKey

_TASK_BYTES = 128 << 20  # bytes of the log that one task reads at most
_SHORT_TASK_BYTES = 8 << 20  # a small log is read by up to _TASKS_PER_CORE such tasks, for progress in small steps
_TASKS_PER_CORE = 4
_FIRST_DIFFERENCES = 5
NewSession = Callable[[], AbstractContextManager["SparkSession"]]


class Archived(NamedTuple):
    """Result of a run. removed: number of files of earlier, unfinished runs."""

    manifest: ArchiveManifest
    files: list[ArchivedFile]
    left_out: list[LeftOut]
    removed: int


def run_archive(
    source: ArchiveSource,
    folder: Path,
    options: ArchiveOptions,
    new_session: NewSession,
    *,
    on_progress: Progress = no_progress,
) -> Archived:
    """Archive the messages that the store has and *folder* does not. Spark is started only if there are any.

    Raises OffsetTooSmallError for messages that expired before they were archived and CorruptMessageError for damaged
    messages, unless *options* allow them; ArchiveDiffersError if the written messages differ from the stored ones;
    StoreContradictionError for another store's archive; StoreLockedError during another run; other StoreErrors of
    reading.
    """
    storage = DiskStorage()
    source = ArchiveSource(source.root.absolute(), None if source.state is None else source.state.absolute())
    folder = folder.absolute()
    store = StoreReader(source.root, state=source.state, refresh_s=0)
    require_known_format(store.paths)
    with closing(store.watermarks), held_folder(folder, outside=source.root, storage=storage):
        before = archive_in(folder)
        plan = make_plan(store, options, before)
        lost = _require_not_lost(plan, options)
        removed = remove_unnamed(folder, before)
        manifest = _new_manifest(plan, options) if before is None else before
        if before is None:
            save_manifest(folder, manifest, storage)  # marks the folder as an archive
        if not plan.stretches and not lost:
            return Archived(manifest, [], [], removed)
        run = _Run(source, folder, options, store, plan, on_progress)
        try:
            if plan.stretches:
                on_progress(StepProgress("starting Spark"))
            with new_session() if plan.stretches else nullcontext() as session:
                digests: Mapping[DigestKey, Digest] = {} if session is None else run.write(session)
            files = publish(folder, run.staging, run.files, storage)
        finally:
            shutil.rmtree(folder / STAGING, ignore_errors=True)
        left_out = [*lost, *run.left_out]
        manifest = _extended(manifest, plan, options, digests, files, left_out, _damage(store, plan, options))
        save_manifest(folder, manifest, storage)
        return Archived(manifest, files, left_out, removed)


class _Run:
    """The Spark part of a run."""

    def __init__(
        self,
        source: ArchiveSource,
        folder: Path,
        options: ArchiveOptions,
        store: StoreReader,
        plan: Plan,
        progress: Progress,
    ) -> None:
        self._source, self._options, self._store, self._plan = source, options, store, plan
        self._on_progress = progress
        self._name, self.staging = new_run(folder)
        self.files: list[ArchivedFile] = []
        self.left_out: list[LeftOut] = []

    def write(self, session: SparkSession) -> Mapping[DigestKey, Digest]:
        """Write the files into staging/, compare them with the store, and return the digests of the stored messages."""
        from tidemark.archive.digest import digest
        from tidemark.archive.layout import lay_out, with_part
        from tidemark.archive.left_out import find_left_out, require_none
        from tidemark.archive.messages import archived_messages, stored_messages
        from tidemark.archive.session import own_settings
        from tidemark.archive.spark_job import WrittenFiles, step
        from tidemark.archive.write import WRITTEN, write_parts

        own, stretches = own_settings(session), self._plan.stretches
        tasks = read_tasks(self._plan.end - self._plan.start, own.sparkContext.defaultParallelism)
        count = sum(one.next - one.first for one in stretches)
        messages = stored_messages(own, self._source, stretches, tasks=tasks)
        with step(own, "reading", self._on_progress, messages=count):
            stored = digest(messages)
            self.left_out = find_left_out(own, self._source, self._store, stretches, stored, tasks=tasks)
        if self._options.fail_on_corruption:
            require_none(self.left_out)
        layout = lay_out(stored, file_bytes=self._options.file_bytes)
        if not layout.parts:
            return stored
        count = sum(one.rows for one in stored.values())
        files = WrittenFiles(own)
        with step(own, "writing", self._on_progress, messages=count, written=files):
            task = write_parts(
                self.staging,
                f"part-{self._name}",
                row_group_bytes=self._options.row_group_bytes,
                on_file=files.add,
            )
            written = with_part(own, messages, layout).mapInArrow(task, WRITTEN).toArrow()
        self.files = sorted(
            map(ArchivedFile.model_validate_json, written["file"].to_pylist()), key=lambda one: one.path
        )
        with step(own, "verifying", self._on_progress, messages=count):
            archived = digest(archived_messages(own, self.staging, [file.path for file in self.files]))
        require_same(stored, archived)
        return stored


def read_tasks(log_bytes: int, cores: int) -> int:
    """Return the number of tasks that read this many bytes of the log."""
    short = min(_TASKS_PER_CORE * cores, -(-log_bytes // _SHORT_TASK_BYTES))
    return max(cores, short, -(-log_bytes // _TASK_BYTES))


def require_same(stored: Mapping[DigestKey, Digest], archived: Mapping[DigestKey, Digest]) -> None:
    """Raise ArchiveDiffersError, which names the first groups that differ, unless all are equal."""
    from tidemark.archive.digest import differences

    found = differences(stored, archived)
    if found:
        told = [f"queue {one.queue_id} of {one.topic} on {one.day}: {text}" for one, text in found[:_FIRST_DIFFERENCES]]
        first = found[0][0]
        raise ArchiveDiffersError(
            f"the written messages differ from the stored ones: {'; '.join(told)}",
            topic=first.topic,
            queue_id=first.queue_id,
            differences=len(found),
        )


def _require_not_lost(plan: Plan, options: ArchiveOptions) -> list[LeftOut]:
    if plan.lost and options.fail_on_data_loss:
        first = plan.lost[0]
        error = OffsetTooSmallError(
            f"messages of {len(plan.lost)} queues expired before they were archived: queue {first.queue_id} of "
            f"{first.topic} starts at {first.next}, but is archived only up to {first.first}",
            topic=first.topic,
            queue_id=first.queue_id,
            min_offset=first.next,
        )
        error.add_note("--no-fail-on-data-loss continues and lists them in the manifest")
        raise error
    return [LeftOut(**one._asdict(), reason=EXPIRED) for one in plan.lost]


def _damage(store: StoreReader, plan: Plan, options: ArchiveOptions) -> list[ArchivedDamage]:
    """Return the ledger's entries within *plan*'s range, of the archived topics or without a known topic."""
    named = {one.topic for one in plan.stretches}
    return [
        ArchivedDamage(**{name: entry[name] for name in ArchivedDamage.model_fields})
        for entry in read_ledger(store.paths.indexer)
        if plan.start <= entry["physical_offset"] < plan.end
        and (entry["topic"] is None or entry["topic"] in named or options.matches(entry["topic"]))
    ]


def _new_manifest(plan: Plan, options: ArchiveOptions) -> ArchiveManifest:
    return ArchiveManifest(
        written_by=f"tidemark {program_version()}",
        written_ms=time.time_ns() // 1_000_000,
        store=StoreIdentity(store_name=options.store_name, log_file_size=plan.log_file_size, term=plan.term),
        physical_end=0,
    )


def _extended(
    before: ArchiveManifest,
    plan: Plan,
    options: ArchiveOptions,
    digests: Mapping[DigestKey, Digest],
    files: list[ArchivedFile],
    left_out: list[LeftOut],
    damage: list[ArchivedDamage],
) -> ArchiveManifest:
    """Return *before* with the additions of a run."""
    queues = before.by_queue()
    for lost in plan.lost:
        queues[lost[:2]] = queues[lost[:2]].model_copy(update={"next": lost.next})
    read: dict[tuple[str, int], list[Digest]] = {}
    for group, one in digests.items():
        read.setdefault((group.topic, group.queue_id), []).append(one)
    for stretch in plan.stretches:
        queues[stretch[:2]] = _added(queues.get(stretch[:2]), stretch, read.get(stretch[:2], []))
    known = {one.physical_offset for one in before.ledger}
    fresh = _new_manifest(plan, options)
    return fresh.model_copy(
        update={
            "physical_end": max(before.physical_end, plan.end),
            "options": options.model_dump(mode="json"),
            "queues": tuple(queues[place] for place in sorted(queues)),
            "left_out": (*before.left_out, *left_out),
            "ledger": (*before.ledger, *(one for one in damage if one.physical_offset not in known)),
            "files": (*before.files, *files),
        }
    )


def _added(queue: ArchivedQueue | None, stretch: OffsetRange, read: list[Digest]) -> ArchivedQueue:
    """Return the queue extended by *stretch*, whose digests are *read*."""
    topic, queue_id, first, following = stretch
    before = queue or ArchivedQueue(topic=topic, queue_id=queue_id, first=first, next=following, rows=0)
    changes = {"next": following, "rows": before.rows + sum(one.rows for one in read)}
    if read:
        last = max(read, key=lambda one: one.max_offset)
        changes |= {"last_queue_offset": last.max_offset, "last_physical_offset": last.max_physical_offset}
    return before.model_copy(update=changes)
