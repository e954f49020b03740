"""DeletedTopics: records and queue files of one shard from before their topic's deletion.

A rebuild would not create the files of such a queue, and a broker would not know the queue's type.
"""

from __future__ import annotations

from tidemark.index.dispatch import QueueRun
from tidemark.index.truncate import is_all_below
from tidemark.store.originals.tombstones import TombstonesFile

from ..plan import EpochPlan
from .queue_folders import QueueFolder, QueueFolders


class DeletedTopics:
    """The deletions that the shard knows. They change only in `refresh`."""

    def __init__(self, plan: EpochPlan, folders: QueueFolders) -> None:
        self._paths = plan.paths
        self._folders = folders
        self._tombstones = TombstonesFile(plan.paths.tombstones)

    def refresh(self) -> bool:
        """Read the deletions again. Return True if there are others than before."""
        return self._tombstones.refresh()

    def living(self, run: QueueRun) -> QueueRun | None:
        """Return *run* without records from before the topic's deletion; None if no record is left."""
        dead_end = self._tombstones.dead_end(run.topic)
        if run.requests["physical_offset"][0] >= dead_end:
            return run
        living = run.requests[run.requests["physical_offset"] >= dead_end]
        return run._replace(requests=living) if len(living) else None

    def drop_queues(self) -> None:
        """Delete the files of all deleted topics' queues. No builder has them open."""
        for topic in self._tombstones.topics:
            for folder in (self._paths.consume_queue / topic, self._paths.batch_consume_queue / topic):
                for queue in folder.glob("*"):
                    if queue.name.isdigit() and self._folders.owns(topic, int(queue.name)):
                        self.drop_queue(topic, int(queue.name))

    def drop_queue(self, topic: str, queue_id: int) -> None:
        """Delete the queue's files if all units predate the topic's deletion, for both queue types."""
        dead_end = self._tombstones.dead_end(topic)
        for batch in (False, True):
            folder = self._paths.queue(topic, queue_id, batch=batch)
            if dead_end and folder.is_dir():
                files = self._folders.open(QueueFolder(topic, queue_id, batch))
                if is_all_below(files, dead_end, batch=batch):
                    for start in list(files.starts):
                        files.delete_file(start)
                    folder.rmdir()
