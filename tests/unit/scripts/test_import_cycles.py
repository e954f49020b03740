from __future__ import annotations

from scripts.import_cycles import circle_in, imports_of


def test_an_import_cycle_is_returned_in_import_order() -> None:
    assert circle_in({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]}) in (
        ["a", "b", "c", "a"],
        ["b", "c", "a", "b"],
        ["c", "a", "b", "c"],
    )


def test_modules_without_an_import_cycle_pass() -> None:
    assert circle_in({"a": ["b", "c"], "b": ["c"], "c": []}) == []


def test_imports_inside_functions_and_for_type_checkers_count() -> None:
    imports = imports_of("tidemark", "services")
    assert "tidemark.spark.source.file_log" in imports["tidemark.spark.source.open_log"]
    assert "tidemark.client" in imports["tidemark.cli.reading.group_offsets"]
