"""The part of `tidemark store repair` for derived files: queues, key index and marks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tidemark.index.check.findings import Finding
    from tidemark.store.paths import StorePaths


class DerivedRepair(NamedTuple):
    """The outcome of a repair. first: name of the first rebuilt index file; None if there is none."""

    found: int
    queues: list[str]
    first: str | None
    left: list[Finding]

    def as_json(self) -> dict[str, Any]:
        """Return the object that `--output json` prints."""
        left = [finding.as_json() for finding in self.left]
        return {"found": self.found, "queues": self.queues, "index_from": self.first, "left": left}


def repair_derived(paths: StorePaths) -> DerivedRepair | None:
    """Rebuild the derived files that contradict the log; return None if the pipeline's run failed.

    Damaged files are moved to tidemark/indexer/set-aside. Raises StoreLockedError while a pipeline runs.
    """
    from tidemark.cli.store.rebuild import build_once
    from tidemark.index.check.scope import whole_store
    from tidemark.index.check.store import check_store
    from tidemark.index.drop import no_pipeline, sizes_of_built
    from tidemark.index.repair import repairable, request_repair
    from tidemark.store.storage import DiskStorage

    storage = DiskStorage()
    with no_pipeline(paths, storage):
        findings = check_store(paths, whole_store(paths)).findings
        damaged = repairable(findings, paths)
        request_repair(damaged, paths, storage)
    if build_once(paths, sizes_of_built(paths), "") is None:
        return None
    left = check_store(paths, whole_store(paths)).findings
    queues = [f"{topic}/{queue_id}" for topic, queue_id in sorted(damaged.queues)]
    return DerivedRepair(len(findings), queues, damaged.first, left)
