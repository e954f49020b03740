"""Draws plots as SVG for embedding in a page: text remains text, and no other resource is loaded."""

from __future__ import annotations

import io
from itertools import cycle

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.report import Line, Plot, PlotKind

_COLOURS = ("#0b6fa4", "#d1495b", "#3d8b5f", "#8a5fb0", "#c77c11")
_SIZE_INCHES = (6.4, 3.4)
_PERCENTILES = {2: "50", 10: "90", 100: "99", 1000: "99.9", 10_000: "99.99", 100_000: "99.999"}  # by 1 / (1 - p)
_NO_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}


def svg_of(plot: Plot) -> str:
    """Return *plot* as an <svg> element."""
    figure = Figure(figsize=_SIZE_INCHES, layout="constrained")
    axes = figure.subplots()
    axes.set_title(plot.title, fontsize=10, loc="left")
    axes.set_xlabel(plot.x_label)
    axes.set_ylabel(plot.y_label)
    axes.grid(visible=True, alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    for (name, line), colour in zip(plot.lines.items(), cycle(_COLOURS), strict=False):
        _draw(axes, plot.kind, line, name, colour)
    _set_scales(axes, plot)
    axes.legend(frameon=False, fontsize=8)
    return _element(figure, plot.title)


def _draw(axes: Axes, kind: PlotKind, line: Line, name: str, colour: str) -> None:
    if kind is PlotKind.HISTOGRAM:
        axes.stairs(line.y, line.x, label=name, color=colour, fill=True, alpha=0.45)
    else:
        axes.plot(line.x, line.y, label=name, color=colour, marker="o" if kind is PlotKind.GROWTH else "")


def _set_scales(axes: Axes, plot: Plot) -> None:
    match plot.kind:
        case PlotKind.LINES:
            axes.set_xlim(left=0)
            axes.set_ylim(bottom=0)
        case PlotKind.HISTOGRAM:
            axes.set_xscale("log")
        case PlotKind.GROWTH:
            axes.set_xscale("log")
            axes.set_yscale("log")
            x = sorted({value for line in plot.lines.values() for value in line.x})
            axes.set_xticks(x, [f"{value:,.3g}" if value < 1000 else f"{value:,.0f}" for value in x])
            axes.minorticks_off()
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        case PlotKind.PERCENTILES:
            axes.set_xscale("log")
            axes.set_yscale("log")
            greatest = max(max(line.x) for line in plot.lines.values())
            ticks = {at: text for at, text in _PERCENTILES.items() if at <= greatest}
            axes.set_xticks(list(ticks), list(ticks.values()))
            axes.minorticks_off()
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")


def _element(figure: Figure, title: str) -> str:
    text = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": title, "font.family": "sans-serif"}):
        figure.savefig(text, format="svg", metadata=_NO_METADATA)
    svg = text.getvalue()
    return svg[svg.index("<svg") :]
