"""Opening of the store that a source's options name."""

from __future__ import annotations

from collections.abc import Collection

from tidemark.read.messages.message_columns import SCHEMA
from tidemark.spark.source.log import Log
from tidemark.spark.source.source_options import SourceOptions


def open_log(options: SourceOptions, columns: Collection[str] = SCHEMA.names) -> Log:
    """Open the store or stores that *options* name.

    A missing store raises CorruptStoreError or TopicNotFoundError, at the latest when it is read.

    columns  columns of the pages
    """
    if options.path is not None:
        from tidemark.spark.source.file_log import FileLog

        return FileLog(options.path, state=options.state_path, columns=columns)
    if options.several_stores:
        from tidemark.spark.source.several_logs import SeveralLogs

        return SeveralLogs(
            options.several_stores, timeout_s=options.timeout, credentials=options.credentials, columns=columns
        )
    from tidemark.spark.source.service_log import ServiceLog

    return ServiceLog(options.url, timeout_s=options.timeout, credentials=options.credentials, columns=columns)
