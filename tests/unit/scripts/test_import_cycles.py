from __future__ import annotations

from scripts.import_cycles import circle_in, imports_of


def test_a_circle_is_found_in_the_order_of_its_imports() -> None:
    assert circle_in({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]}) in (
        ["a", "b", "c", "a"],
        ["b", "c", "a", "b"],
        ["c", "a", "b", "c"],
    )


def test_without_a_circle_nothing_is_found() -> None:
    assert circle_in({"a": ["b", "c"], "b": ["c"], "c": []}) == []


def test_imports_inside_functions_and_for_type_checkers_count() -> None:
    imports = imports_of("tidemark", "services")
    assert "tidemark.spark.source.file_log" in imports["tidemark.spark.source.open_log"]
    assert "tidemark.client" in imports["tidemark.cli.reading.group_offsets"]
