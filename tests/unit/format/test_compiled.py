"""Machine code on disk is never older than its sources."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

import tidemark.format
from tests.needs_numba import needs_numba
from tidemark.format import kernels
from tidemark.format.kernels import compiled

pytestmark = needs_numba

MODULES = [module.name for module in pkgutil.iter_modules(kernels.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_every_compiled_loop_is_cached_under_the_checksum_of_all_sources(name: str) -> None:
    """A change in one file recompiles the loops of all files, because a loop may call another file's."""
    module = importlib.import_module(f"{kernels.__name__}.{name}")
    loops = [value for value in vars(module).values() if isinstance(value, Dispatcher)]
    assert loops or name in ("compiled", "crc_address", "machine", "positions")
    for loop in loops:
        _, sources = loop._cache._cache_file._source_stamp  # type: ignore[attr-defined]
        assert sources == compiled._checksum_of_sources()


@pytest.mark.parametrize("changed", ["record", "kernels/properties"])
def test_the_checksum_changes_with_any_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str) -> None:
    """This holds for layouts and loops."""
    for source in Path(tidemark.format.__path__[0]).rglob("*.py"):
        copy = tmp_path / source.relative_to(tidemark.format.__path__[0])
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(source.read_bytes())
    monkeypatch.setattr(tidemark.format, "__path__", [str(tmp_path)])
    monkeypatch.setattr(kernels, "__path__", [str(tmp_path / "kernels")])
    assert compiled._checksum_of_sources() == compiled._SOURCES
    with (tmp_path / f"{changed}.py").open("a") as file:
        file.write("# changed\n")
    assert compiled._checksum_of_sources() != compiled._SOURCES
