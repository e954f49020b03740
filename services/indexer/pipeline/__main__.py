"""The pipeline's entry point: settings → logging → follow, or drain and exit."""

from __future__ import annotations

import sys

import structlog

from tidemark.errors import StoreError
from tidemark.settings.door import SettingsRefusedError, read_settings
from tidemark.settings.logs import set_up_logging
from tidemark.settings.startup import restore_signals
from tidemark.store.open_files_limit import allow_many_files
from tidemark.store.originals.format_file import require_known_format
from tidemark.store.safety import require_safe_store
from tidemark.store.storage import DiskStorage

from .config import PipelineSettings
from .follow import follow
from .once import run_once
from .plan import make_plan
from .prepare import own_indexer
from .spark.failures import last_line

log = structlog.get_logger()


def main(arguments: list[str] | None = None) -> int:
    """Run the pipeline and return the exit status: 0 done or stopped, 1 failed, 2 bad settings."""
    try:
        settings = read_settings("pipeline", PipelineSettings, sys.argv[1:] if arguments is None else arguments)
    except SettingsRefusedError as error:
        sys.stderr.writelines(f"{line}\n" for line in error.lines)
        return 2
    set_up_logging(settings.log_level)
    allow_many_files()
    storage = DiskStorage()
    plan = make_plan(settings)
    try:
        require_known_format(plan.paths)
        require_safe_store(plan.paths)
        with own_indexer(plan, storage):
            if settings.once:
                restore_signals()
                run_once(settings, storage)
            else:
                follow(settings, plan, storage)
    except StoreError as error:
        log.error("pipeline_failed", error=type(error).__name__, message=error.message, **error.facts)
        return 1
    except Exception as error:  # a failed query's text holds its task's exception and pages of plans
        log.error("pipeline_failed", error=type(error).__name__, message=last_line(str(error)))
        log.debug("pipeline_failed_at", exc_info=error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
