"""ReplicaAdmission: which replicas a writer sends its log to."""

from __future__ import annotations

from collections.abc import Collection

from tidemark.errors import StoreContradictionError, StoreLockedError
from tidemark.replication.member_names import folder_of, name_of

from ..config import WriterSettings
from .messages import SILENCE_S, Hello


class ReplicaAdmission:
    """The rules of one writer. segment_size: of its CommitLog files, in bytes; identity: of the writer."""

    def __init__(self, settings: WriterSettings, segment_size: int, identity: str) -> None:
        self._members = settings.members
        self._segment_size = segment_size
        self._identity = identity

    def require_same_group(self, hello: Hello, group: str) -> None:
        """Raise StoreContradictionError if a replica belongs to another group, or its files have another size."""
        if hello.member not in self._members:
            raise StoreContradictionError(
                f"{hello.member!r} is not a member of the group, which has {', '.join(self._members)}: set "
                "TIDEMARK_GROUP_MEMBERS alike on all members",
                setting="TIDEMARK_GROUP_MEMBERS",
            )
        if hello.group and hello.group != group:
            raise StoreContradictionError(
                f"member {hello.member} belongs to group {hello.group}, and this one to {group}: give it an "
                "empty folder",
                setting="TIDEMARK_GROUP_MEMBERS",
            )
        if hello.segment_size != self._segment_size:
            raise StoreContradictionError(
                f"CommitLog files of member {hello.member} have {hello.segment_size} bytes, and those of the writer "
                f"{self._segment_size}: give it the writer's commit_log_segment_size_bytes",
                setting="commit_log_segment_size_bytes",
            )

    def require_single(self, hello: Hello, connected: Collection[str]) -> None:
        """Raise StoreLockedError if the folder of a replica is a copy of another one's, or it is connected twice.

        connected: identities of the connected replicas
        """
        if hello.identity in connected:
            raise StoreLockedError(
                f"member {hello.member} is connected already: an earlier stream of it ends within {SILENCE_S:g} s, "
                "unless two processes use its folder"
            )
        folder = folder_of(hello.identity)
        same = next((one for one in (self._identity, *connected) if folder_of(one) == folder), None)
        if same is not None:
            raise StoreLockedError(
                f"the folder of member {hello.member} is a copy of that of {name_of(same)}, which is connected: start "
                "it with an empty folder"
            )
