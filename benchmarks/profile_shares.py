"""Summarises a flame graph: the functions in which a process spent its time, each without its callees."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import orjson
from rich.table import Table

_SVG, _FG = "{http://www.w3.org/2000/svg}", "{http://github.com/jonhoo/inferno}"
_TITLE = re.compile(r"(?P<name>.*) \([\d,]+ samples?, [\d.]+%\)")
_FRAME = re.compile(r"(?P<function>.*) \((?P<file>[^()]*?)(:\d+)?\)")
_ROOT_NAME = "all"
_MOST = 12
_WAITING = re.compile(  # waits for the kernel, a thread or a process, many of which py-spy counts as active
    r"Condition\.wait |_worker \(concurrent|Thread\.run |\S*Selector\.select |\S*\bpoll |_end_with_parent "
    r"|\S*channel_spin |FinalizerWorker\.run |CallbackServer\.run |Connection\._recv |SemLock\.__enter__ "
    r"|manager \(\S*daemon\.py|read_int \(|wait \(tidemark/store/wake|FolderLock\.acquire "
    r"|Runner\.run \(asyncio|Popen\._try_wait "
)
_LIBRARIES = re.compile(r".*/(site-packages|python3\.\d+)/")


class _Frame(NamedTuple):
    name: str
    start: int
    samples: int
    row: float


class Share(NamedTuple):
    """The share of one function. place: function and file; share: of the process's active samples, 0 to 1."""

    place: str
    share: float


def own_samples(svg: str) -> Counter[str]:
    """Return the samples of each function of a flame graph, without those of its callees.

    In py-spy's format a frame has its number of samples as `fg:w` and their start as `fg:x`.
    """
    frames = [_frame(group) for group in ElementTree.fromstring(svg).iter(f"{_SVG}g") if _is_frame(group)]
    rows = sorted({frame.row for frame in frames})
    if frames and next(frame for frame in frames if frame.name == _ROOT_NAME).row != rows[0]:
        rows.reverse()  # the graph is drawn with its root at the bottom
    by_row: dict[float, list[_Frame]] = {row: [] for row in rows}
    for frame in frames:
        by_row[frame.row].append(frame)
    own: Counter[str] = Counter()
    for row, above in zip(rows, [*rows[1:], None], strict=True):
        callees = by_row[above] if above is not None else []
        for frame in by_row[row]:
            end = frame.start + frame.samples
            called = sum(callee.samples for callee in callees if frame.start <= callee.start < end)
            if frame.samples > called:
                own[_place(frame.name)] += frame.samples - called
    return own


def _is_frame(group: ElementTree.Element) -> bool:
    rectangle = group.find(f"{_SVG}rect")
    return group.find(f"{_SVG}title") is not None and rectangle is not None and f"{_FG}w" in rectangle.attrib


def _frame(group: ElementTree.Element) -> _Frame:
    title, rectangle = group.findtext(f"{_SVG}title", ""), group.find(f"{_SVG}rect")
    assert rectangle is not None, "_is_frame has checked that"
    found = _TITLE.fullmatch(title)
    name = title if found is None else found["name"]
    return _Frame(
        name, int(rectangle.attrib[f"{_FG}x"]), int(rectangle.attrib[f"{_FG}w"]), float(rectangle.attrib["y"])
    )


def _place(name: str) -> str:
    """Return *name* without the line number and without this machine's path of libraries."""
    found = _FRAME.fullmatch(name)
    if found is None:
        return name
    return f"{found['function']} ({_LIBRARIES.sub('', found['file'])})"


def shares(graphs: Iterable[Path], most: int = _MOST) -> list[Share]:
    """Return the shares in the graphs of one kind of process, without waits, greatest first."""
    own = sum((own_samples(path.read_text()) for path in graphs), Counter[str]())
    own = Counter({place: samples for place, samples in own.items() if not _WAITING.match(place)})
    total = own.total()
    return [Share(place, samples / total) for place, samples in own.most_common(most)]


def shares_table(by_process: Mapping[str, list[Share]]) -> Table:
    """Return the shares as a table for the terminal."""
    table = Table("process", "function, without its callees", "share", title="shares of samples")
    for process, found in by_process.items():
        for share in found:
            table.add_row(process, share.place, f"{share.share:.1%}")
    return table


def keep_profile(
    folder: Path, benchmark: str, machine: Mapping[str, str], by_process: Mapping[str, list[Share]]
) -> Path:
    """Write the shares as JSON and return the path."""
    processes = {name: [share._asdict() for share in found] for name, found in by_process.items() if found}
    content = {"benchmark": benchmark, "machine": dict(machine), "processes": processes}
    folder.mkdir(exist_ok=True)
    path = folder / f"{benchmark}.json"
    path.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
    return path
