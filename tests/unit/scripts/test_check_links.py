from __future__ import annotations

from pathlib import Path

import pytest

from scripts import check_links


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "other.md").write_text("# Other\n\n## A `heading`, with (signs)\n\n## Twice\n\n## Twice\n")
    monkeypatch.setattr(check_links, "ROOT", tmp_path)
    check_links.anchors.cache_clear()
    return tmp_path


def faults(root: Path, text: str) -> list[str]:
    page = root / "docs" / "page.md"
    page.write_text(text)
    return [fault.partition(": ")[2] for fault in check_links.faults(page)]


def test_valid_links_to_files_and_headings_pass(root: Path) -> None:
    text = (
        "[a](other.md) [b](other.md#a-heading-with-signs) [c](other.md#twice-1) [d](#here) [e](https://x/y)\n\n# Here\n"
    )
    assert faults(root, text) == []


@pytest.mark.parametrize(
    ("target", "fault"),
    [
        ("none.md", "there is no such file"),
        ("other.md#none", "there is no such heading"),
        ("other.md#twice-2", "there is no such heading"),
        ("#none", "there is no such heading"),
    ],
)
def test_dead_links_are_reported_with_their_line(root: Path, target: str, fault: str) -> None:
    assert faults(root, f"one line\n\n[text]({target})\n") == [f"{target}: {fault}"]


def test_links_in_code_are_not_links(root: Path) -> None:
    assert faults(root, "`[text](none.md)`\n\n```\n[text](none.md)\n```\n") == []
