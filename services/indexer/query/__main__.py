"""Entry point of the query service: reads the settings, configures logging, and serves."""

from __future__ import annotations

import faulthandler
import sys

import structlog

from tidemark.errors import StoreError
from tidemark.settings.door import SettingsRefusedError, read_settings
from tidemark.settings.logs import set_up_logging
from tidemark.store.open_files_limit import allow_many_files

from .config import QuerySettings
from .server import serve


def main(arguments: list[str] | None = None) -> int:
    """Run the service; return the exit status: 0 stopped, 1 failed, 2 bad settings."""
    try:
        settings = read_settings("query", QuerySettings, sys.argv[1:] if arguments is None else arguments)
    except SettingsRefusedError as error:
        sys.stderr.writelines(f"{line}\n" for line in error.lines)
        return 2
    faulthandler.enable()
    allow_many_files()
    set_up_logging(settings.log_level)
    try:
        return serve(settings)
    except (StoreError, OSError) as error:
        structlog.get_logger().error("query_failed", error=type(error).__name__, message=str(error))
        return 1
    except SystemExit:  # from uvicorn: the address cannot be bound
        structlog.get_logger().error("query_failed", message=f"cannot listen on {settings.query_listen}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
