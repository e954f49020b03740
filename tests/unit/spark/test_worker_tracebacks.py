"""Tracebacks of Spark's Python workers."""

from __future__ import annotations

import sys
import traceback
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from tidemark.spark.worker_tracebacks import omit_tracebacks_of_closed_connections


def main_module(name: str) -> ModuleType:
    """Return a main module that was started as `python -m name` and prints tracebacks."""
    module = ModuleType("__main__")
    module.__spec__ = ModuleSpec(name, None)
    module.__dict__["traceback"] = traceback
    return module


@pytest.mark.parametrize(
    ("error", "is_shown"), [(BrokenPipeError(), False), (ConnectionResetError(), False), (ValueError("x"), True)]
)
def test_a_worker_prints_no_traceback_of_a_closed_connection(
    error: Exception, is_shown: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Others are printed as before, and so is everything that other modules print."""
    module = main_module("pyspark.daemon")
    monkeypatch.setitem(sys.modules, "__main__", module)
    omit_tracebacks_of_closed_connections()
    try:
        raise error
    except type(error):
        module.__dict__["traceback"].print_exc()
        assert ("Traceback" in capsys.readouterr().err) is is_shown
        traceback.print_exc()
        assert "Traceback" in capsys.readouterr().err


def test_other_processes_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver's main module is the user's."""
    module = main_module("program")
    monkeypatch.setitem(sys.modules, "__main__", module)
    omit_tracebacks_of_closed_connections()
    assert module.__dict__["traceback"] is traceback
