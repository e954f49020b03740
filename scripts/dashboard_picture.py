"""Draws docs/pictures/dashboard.png: all panels of the dashboard, queried from a real Prometheus. `make pictures`.

The real services run under load before; PICTURE_SECONDS (default: 60) sets the length of the run.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import threading
import time
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from scripts.dashboard import PANELS, Panel
from scripts.prometheus_server import prometheus_over
from tidemark.client import Consumer, Message, Producer
from tidemark.local.local_stack import LocalStack, free_port

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "dashboard.png"
_COLOURS = ("#0b6fa4", "#d1495b", "#3d8b5f", "#8a5fb0", "#c77c11", "#5b6770")
_COLUMNS = 3
_SIZE_INCHES = (14.0, 17.0)
_DPI = 72
_WINDOW = "10s"
_UNITS = {"s": "s", "ms": "ms", "bytes": "B", "Bps": "B/s", "cps": "/s", "reqps": "/s", "short": "", "bool_yes_no": ""}
_MILLISECOND = 1e-3
_MOST_LINES = 5
_BATCH = 50


def main() -> int:
    """Run the services under load, query Prometheus and draw the picture."""
    seconds = float(os.environ.get("PICTURE_SECONDS", "60"))
    ports = {name: free_port() for name in ("writer", "pipeline")}
    environment = {f"TIDEMARK_{name.upper()}_METRICS_LISTEN": f"127.0.0.1:{port}" for name, port in ports.items()}
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        with LocalStack(folder / "data", environment={**environment, "TIDEMARK_EPOCH_MS": "5000"}) as stack:
            addresses = {**{name: f"127.0.0.1:{port}" for name, port in ports.items()}, "query": stack.query_url[7:]}
            with prometheus_over(addresses, folder) as prometheus:
                began = time.time()
                _load(stack, seconds)
                _draw(prometheus, began, time.time())
    sys.stdout.write(f"{PICTURE}\n")
    return 0


def _load(stack: LocalStack, seconds: float) -> None:
    """Write two topics at varying rates; one group keeps up, another lags, and some requests fail."""
    stop = threading.Event()
    workers = [
        threading.Thread(target=work, args=(stack, stop)) for work in (_produce, _consume_all, _consume_slowly, _ask)
    ]
    for worker in workers:
        worker.start()
    time.sleep(seconds)
    stop.set()
    for worker in workers:
        worker.join()


def _produce(stack: LocalStack, stop: threading.Event) -> None:
    with Producer(stack.writer_address) as producer:
        for topic in ("orders", "payments"):
            producer.topics.create(topic, queues=4)
        began = time.monotonic()
        while not stop.is_set():
            wave = 1.2 + math.sin((time.monotonic() - began) / 12)
            for topic, count in (("orders", int(_BATCH * wave)), ("payments", int(_BATCH * (2.4 - wave) / 3))):
                producer.send_batch([Message(topic, b"x" * 400, keys=[f"k{n}"]) for n in range(max(1, count))])
            stop.wait(0.02)


def _consume_all(stack: LocalStack, stop: threading.Event) -> None:
    with Consumer(["orders", "payments"], group="billing", url=stack.query_url, start="earliest") as consumer:
        while not stop.is_set():
            consumer.poll(timeout_s=0.2)
            consumer.commit()


def _consume_slowly(stack: LocalStack, stop: threading.Event) -> None:
    with Consumer("orders", group="reports", url=stack.query_url, start="earliest", max_messages=200) as consumer:
        while not stop.wait(0.25):
            consumer.poll(timeout_s=0.2)
            consumer.commit()


def _ask(stack: LocalStack, stop: threading.Event) -> None:
    no_such_queue = {"messages": [{"body": "x"}], "queue_id": 99}
    with httpx.Client(base_url=stack.query_url, timeout=30) as client:
        while not stop.wait(0.5):
            client.post("/v1/topics/orders/messages", json=no_such_queue)
            client.get("/v1/topics/orders/messages", params={"key": "k1", "limit": 5})
            client.get("/v1/status")


def _draw(prometheus: httpx.Client, began: float, ended: float) -> None:
    rows = -(-len(PANELS) // _COLUMNS)
    figure = Figure(figsize=_SIZE_INCHES, layout="constrained", facecolor="white")
    figure.suptitle(f"Tidemark, {ended - began:.0f} seconds under load", x=0.01, ha="left", fontsize=14, weight="bold")
    grid = figure.subplots(rows, _COLUMNS, squeeze=False).flatten()
    for axes, panel in zip(grid, PANELS, strict=False):
        _draw_panel(axes, panel, _series(prometheus, panel, began, ended), began)
    for axes in grid[len(PANELS) :]:
        axes.set_visible(False)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=_DPI)


def _series(prometheus: httpx.Client, panel: Panel, began: float, ended: float) -> dict[str, list[tuple[float, float]]]:
    """Return (time, value) pairs by legend."""
    found: dict[str, list[tuple[float, float]]] = {}
    for query in panel.queries:
        asked = {
            "query": query.promql.replace("$__rate_interval", _WINDOW),
            "start": str(began),
            "end": str(ended),
            "step": "1",
        }
        answer: dict[str, Any] = prometheus.get("/api/v1/query_range", params=asked).raise_for_status().json()
        for series in answer["data"]["result"]:
            legend = query.legend
            for name, value in series["metric"].items():
                legend = legend.replace(f"{{{{{name}}}}}", value)
            found[legend] = [(float(at), float(value)) for at, value in series["values"]]
    return found


def _draw_panel(axes: Axes, panel: Panel, lines: dict[str, list[tuple[float, float]]], began: float) -> None:
    axes.set_title(panel.title, fontsize=10, loc="left", weight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    if panel.kind == "stat":
        _draw_stat(axes, lines, panel.unit)
        return
    shown = dict(sorted(lines.items(), key=lambda line: -_greatest(line[1]))[:_MOST_LINES])
    for (legend, points), colour in zip(shown.items(), cycle(_COLOURS), strict=False):
        axes.plot([at - began for at, _ in points], [value for _, value in points], label=legend, color=colour, lw=1.3)
    axes.set_ylim(bottom=0)
    axes.grid(visible=True, alpha=0.25)
    scale = EngFormatter(unit=_UNITS[panel.unit], sep=" ")
    axes.yaxis.set_major_formatter(
        (lambda value, _: EngFormatter(unit="s", sep=" ")(value * _MILLISECOND)) if panel.unit == "ms" else scale
    )
    if lines:
        left_out = len(lines) - len(shown)
        axes.legend(
            frameon=False, fontsize=7, title=f"and {left_out} more" if left_out else None, title_fontsize=7
        ).set_in_layout(False)


def _greatest(points: list[tuple[float, float]]) -> float:
    """Return the greatest finite value; a rate without data is NaN."""
    return max((value for _, value in points if math.isfinite(value)), default=0.0)


def _draw_stat(axes: Axes, lines: dict[str, list[tuple[float, float]]], unit: str) -> None:
    """Draw the last value of each line in large letters."""
    axes.axis("off")
    for number, (legend, points) in enumerate(lines.items()):
        last = points[-1][1]
        text = (
            ("yes" if last else "no")
            if unit == "bool_yes_no"
            else EngFormatter(unit=_UNITS[unit], sep=" ", places=None if last == int(last) else 1)(last)
        )
        axes.text(0.02, 0.8 - 0.28 * number, f"{text}", fontsize=18, color="#0b6fa4", transform=axes.transAxes)
        axes.text(0.3, 0.8 - 0.28 * number, legend, fontsize=9, color="#5b6770", transform=axes.transAxes)


if __name__ == "__main__":
    sys.exit(main())
