"""GroupProgress: commits a stream's progress as a consumer group's offsets, which `group lag` shows."""

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
    """Progress of options.commit_group. Only informative: a failed commit is logged, and the checkpoint stays valid."""

    def __init__(self, options: SourceOptions) -> None:
        assert options.commit_group is not None
        self._group = options.commit_group
        stores: dict[str, str | None] = dict(zip(options.several_stores, options.several_stores, strict=True))
        stores = stores or {"": options.url}
        self._queries = {
            store: Query(url, timeout_s=options.timeout, credentials=options.credentials)
            for store, url in stores.items()
        }

    def commit(self, offsets: Mapping[TopicQueue, int]) -> None:
        """Commit *offsets*, the exclusive ends of the processed messages, in their stores."""
        for store, query in self._queries.items():
            own = [(queue, offset) for queue, offset in offsets.items() if getattr(queue, "store", "") == store]
            if not own:  # the topics are in the other stores
                continue
            try:
                commit_as_administrator(query, self._group, own)
            except StoreError as error:
                _log.warning("could not commit the progress of group %s: %s", self._group, error.message)

    def close(self) -> None:
        """Close the connections."""
        for query in self._queries.values():
            query.close()
