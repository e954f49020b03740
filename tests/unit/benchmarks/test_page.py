"""The page is self-contained: it needs no network and no other file."""

from __future__ import annotations

import html.parser
import re

import numpy as np
import orjson

from benchmarks.page import to_html, to_json
from benchmarks.report import Line, Plot, PlotKind, Row, latency_plots
from benchmarks.runner import Run

_GROWTH = Plot("growth", "queues", "messages/s", PlotKind.GROWTH, {"append": Line([10.0, 1e4], [5e5, 4e5])})
_TIME = Plot("over time", "s", "messages/s", PlotKind.LINES, {"a & b": Line([0.25, 0.5], [1e5, 2e5])})
_LATENCIES = latency_plots("latency", {"visible": np.geomspace(0.5, 80, 500)})


def _run() -> Run:
    row = Row("append_sync", "append <sync>", 344_000.0, "msg/s", "≥ 3 × RocketMQ", "a note")
    return Run({"processor": "one & two"}, [(row, "sync")], [_GROWTH, _TIME, *_LATENCIES], {"start": "Oops: <gone>"})


class _References(html.parser.HTMLParser):
    """Collects everything that a browser would load or follow, and the tags."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.found += [value or "" for name, value in attrs if name in {"src", "href", "xlink:href", "srcset", "data"}]
        self.found += [value or "" for name, value in attrs if name == "style" and "url(" in (value or "")]


def test_the_page_has_no_external_references() -> None:
    """There are no external scripts, links, images, fonts or style sheets."""
    page = to_html(_run(), "2026-01-01 12:00")
    parser = _References()
    parser.feed(page)
    assert parser.tags.count("svg") == len(_run().plots)
    assert [one for one in parser.found if not one.startswith("#")] == []
    assert not {"script", "link", "img", "iframe", "object", "image"} & set(parser.tags)
    assert re.findall(r"@import|url\((?!#)", page) == []


def test_the_page_shows_the_figures_and_escapes_texts() -> None:
    """It shows value, unit, aim, flush mode, note, machine and failures."""
    page = to_html(_run(), "2026-01-01 12:00")
    for text in ("append &lt;sync&gt;", "344,000", "msg/s", "≥ 3 × RocketMQ", ">sync<", "a note", "one &amp; two"):
        assert text in page
    assert "Oops: &lt;gone&gt;" in page


def test_the_data_has_rows_plots_and_machine() -> None:
    """Programs find them by key."""
    content = orjson.loads(to_json(_run()))
    assert content["rows"][0]["key"] == "append_sync"
    assert content["rows"][0]["flush_mode"] == "sync"
    assert content["machine"] == {"processor": "one & two"}
    assert content["plots"][0]["lines"]["append"] == {"x": [10.0, 1e4], "y": [5e5, 4e5]}
