"""The query facade's door: settings → logging → serve."""

from __future__ import annotations

import faulthandler
import logging
import sys

import structlog

from tidemark.errors import StoreError
from tidemark.settings.door import SettingsRefusedError, read_settings
from tidemark.store.open_files_limit import allow_many_files

from .config import QuerySettings
from .server import serve


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0 stopped, 1 failed, 2 bad settings."""
    try:
        settings = read_settings("query", QuerySettings, sys.argv[1:] if arguments is None else arguments)
        level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    except SettingsRefusedError as error:
        sys.stderr.writelines(f"{line}\n" for line in error.lines)
        return 2
    except KeyError as error:
        sys.stderr.write(f"log_level {error}: debug, info, warning or error\n")
        return 2
    faulthandler.enable()
    allow_many_files()
    _set_up_logging(level)
    try:
        return serve(settings)
    except (StoreError, OSError) as error:
        structlog.get_logger().error("query_failed", error=type(error).__name__, message=str(error))
        return 1
    except SystemExit:  # uvicorn: the address cannot be bound
        structlog.get_logger().error("query_failed", message=f"cannot listen on {settings.query_listen}")
        return 1


def _set_up_logging(level: int) -> None:
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(level),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.dev.ConsoleRenderer(colors=False) if sys.stderr.isatty() else structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


if __name__ == "__main__":
    sys.exit(main())
