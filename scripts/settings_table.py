"""Writes the table of settings into docs/operations.md from the settings classes: `make docs`; a test compares them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pydantic_core import PydanticUndefined
from pydantic_settings import BaseSettings

from services.indexer.attach.config import AttachSettings
from services.indexer.pipeline.config import PipelineSettings
from services.indexer.query.config import QuerySettings
from services.writer.config import WriterSettings

PAGE = Path(__file__).resolve().parents[1] / "docs" / "operations.md"
HEADING = "## Settings\n"
_CLASSES: dict[str, type[BaseSettings]] = {
    "writer": WriterSettings,
    "pipeline": PipelineSettings,
    "query": QuerySettings,
    "attach": AttachSettings,
}


def table() -> str:
    """Every setting of every service: name, who reads it, default, meaning. Markdown."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for service, settings in _CLASSES.items():
        for name, field in settings.model_fields.items():
            key = (f"TIDEMARK_{name.upper()}", _default(field.default), str(field.description))
            rows.setdefault(key, []).append(service)
    lines = ["| setting | read by | default | |", "|---|---|---|---|"]
    for (name, default, meaning), services in sorted(rows.items()):
        lines.append(f"| `{name}` | {', '.join(services)} | {default} | {meaning} |")
    return "\n".join(lines) + "\n"


def _default(value: Any) -> str:
    return "–" if value in (None, "", PydanticUndefined) else f"`{getattr(value, 'value', value)}`"


def with_table(page: str) -> str:
    """The page with what stands behind its last heading replaced."""
    head, heading, _ = page.partition(HEADING)
    source = "From the environment. All but the writer take theirs as options, too (`--help`)."
    return f"{head}{heading}\n{source}\n\n{table()}"


if __name__ == "__main__":
    sys.exit(0 if PAGE.write_text(with_table(PAGE.read_text())) else 1)
