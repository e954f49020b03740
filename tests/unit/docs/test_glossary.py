"""docs/glossary.md has the words that the other pages use without an explanation."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"
ENTRY = re.compile(r"^\*\*(.+?)\*\*: (.+)$", re.MULTILINE)
TERMS = """
topic, queue, tag, key, message id, queue offset, physical offset, watermark, committed offset, term, epoch, shard,
pair, understudy, SimpleCQ, BatchCQ, inner batch, group, member, generation, lag, retry, dead letter, segment
"""


def test_each_term_has_one_entry_with_a_link_to_its_page() -> None:
    entries = ENTRY.findall((DOCS / "glossary.md").read_text())
    assert sorted(term.lower() for term, _ in entries) == sorted(term.strip().lower() for term in TERMS.split(","))
    assert [term for term, text in entries if not re.search(r"\]\(\w[\w-]*\.md", text)] == []


def test_the_index_links_the_pages_for_newcomers() -> None:
    linked = re.findall(r"\]\((.+?\.md)\)", (DOCS / "index.md").read_text())
    assert {"getting-started.md", "cookbook.md", "glossary.md", "settings.md"} <= set(linked)
