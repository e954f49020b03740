"""Open what the options of a source name: a store's files, or a query service."""

from __future__ import annotations

from collections.abc import Collection

from tidemark.read.messages.message_columns import SCHEMA
from tidemark.spark.source.log import Log
from tidemark.spark.source.source_options import SourceOptions


def open_log(options: SourceOptions, columns: Collection[str] = SCHEMA.names) -> Log:
    """Of the store that *options* name; CorruptStoreError or TopicNotFoundError tell later what is not there.

    columns  that pages must have; files give no others
    """
    if options.path is not None:
        from tidemark.spark.source.file_log import FileLog

        return FileLog(options.path, state=options.state_path, columns=columns)
    from tidemark.spark.source.service_log import ServiceLog

    return ServiceLog(options.url, timeout_s=options.timeout, credentials=options.credentials)
