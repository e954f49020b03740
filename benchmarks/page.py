"""Writes the result of a run: results/<time>.json for programs, and the self-contained page <time>.html."""

from __future__ import annotations

import time
from pathlib import Path

import orjson
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from benchmarks.plots import svg_of
from benchmarks.runner import Run
from benchmarks.table import COLUMNS, cells

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True, undefined=StrictUndefined
)


def save(run: Run, results: Path) -> list[Path]:
    """Write both files to *results* and return their paths."""
    results.mkdir(exist_ok=True)
    now = time.localtime()
    data = results / f"{time.strftime('%Y%m%d-%H%M%S', now)}.json"
    data.write_bytes(to_json(run))
    page = data.with_suffix(".html")
    page.write_text(to_html(run, time.strftime("%Y-%m-%d %H:%M", now)))
    return [data, page]


def to_json(run: Run) -> bytes:
    """Return machine, rows with their flush modes, plots as points, and failures as JSON."""
    content = {
        "machine": run.machine,
        "rows": [{**row._asdict(), "flush_mode": flush_mode} for row, flush_mode in run.rows],
        "plots": [
            {**plot._asdict(), "lines": {name: line._asdict() for name, line in plot.lines.items()}}
            for plot in run.plots
        ],
        "failures": run.failures,
    }
    return orjson.dumps(content, option=orjson.OPT_INDENT_2)


def to_html(run: Run, when: str) -> str:
    """Return the page: machine, table and plots."""
    return _TEMPLATES.get_template("page.html.jinja").render(
        time=when,
        machine=run.machine,
        columns=COLUMNS,
        rows=[cells(row, flush_mode) for row, flush_mode in run.rows],
        plots=[Markup(svg_of(plot)) for plot in run.plots],
        failures=run.failures,
    )
