"""GroupProgress: how far a stream has come, put on record as a consumer group's offsets: `group lag` shows it."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from tidemark.client.consumer.group_member import commit_as_administrator
from tidemark.client.received_message import TopicQueue
from tidemark.client.rest.query import Query
from tidemark.errors import StoreError
from tidemark.spark.source.source_options import SourceOptions

_log = logging.getLogger(__name__)


class GroupProgress:
    """Of options.commit_group. The checkpoint counts: of a commit that fails is told, and the next one follows."""

    def __init__(self, options: SourceOptions) -> None:
        assert options.commit_group is not None
        self._group = options.commit_group
        self._query = Query(options.url, timeout_s=options.timeout, credentials=options.credentials)

    def commit(self, offsets: Mapping[TopicQueue, int]) -> None:
        """All below *offsets* is done."""
        try:
            commit_as_administrator(self._query, self._group, offsets.items())
        except StoreError as error:
            _log.warning("progress of group %s is not on record: %s", self._group, error.message)

    def close(self) -> None:
        """End the connection."""
        self._query.close()
