"""Writes the lists of options into docs/spark.md from the options' classes: `make docs`; a test compares them."""

from __future__ import annotations

import sys
from pathlib import Path

from tidemark.spark.sink.sink_options import SinkOptions
from tidemark.spark.source.source_options import Options, SourceOptions

PAGE = Path(__file__).resolve().parents[1] / "docs" / "spark.md"
_CLASSES: dict[str, type[Options]] = {
    "### Options of the source": SourceOptions,
    "### Options of the sink": SinkOptions,
}
_END = "\n## "


def list_of(options: type[Options]) -> str:
    """Return the list of all options as Markdown: name, default, meaning."""
    lines = []
    names = options.option_names()
    repeated = [field for field in options.model_fields if _is_as_in_the_source(options, field)]
    for field, info in options.model_fields.items():
        if field not in repeated:
            shown = f"{names[field]}` (required)" if info.is_required() else f"{names[field]}{_default(info.default)}`"
            lines.append(f"- `{shown}: {info.description}")
    if repeated:
        lines.append(f"- {', '.join(f'`{names[field]}`' for field in repeated)}: as for the source")
    return "\n".join(lines) + "\n"


def _is_as_in_the_source(options: type[Options], field: str) -> bool:
    """Return True if *options* are not those of the source, which describes the option *field* in the same words."""
    source = SourceOptions.model_fields.get(field)
    same = source is not None and source.description == options.model_fields[field].description
    return options is not SourceOptions and same


def _default(value: object) -> str:
    return "" if value in (None, ()) else f"={str(value).lower() if isinstance(value, bool) else value}"


def with_lists(page: str) -> str:
    """Return *page* with a new list between each heading and the next section."""
    for heading, options in _CLASSES.items():
        head, found, rest = page.partition(heading)
        assert found, heading
        _, end, tail = rest.partition(_END)
        page = f"{head}{heading}\n\n{list_of(options)}{end}{tail}"
    return page


if __name__ == "__main__":
    sys.exit(0 if PAGE.write_text(with_lists(PAGE.read_text())) else 1)
