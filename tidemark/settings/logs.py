"""Logging of a service to standard error: one JSON line per event, or readable text on a terminal."""

from __future__ import annotations

import enum
import logging
import sys
from typing import Annotated, Any

import structlog
from pydantic import BeforeValidator, Field


class LogLevel(enum.StrEnum):
    """Lowest level of the events that are logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def _lower(given: Any) -> Any:
    return given.lower() if isinstance(given, str) else given


LogLevelSetting = Annotated[LogLevel, BeforeValidator(_lower), Field(description="debug, info, warning or error")]


def set_up_logging(level: LogLevel) -> None:
    """Configure structlog for the whole process."""
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,  # adds request_id
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
