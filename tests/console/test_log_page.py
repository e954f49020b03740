"""The log drawn to scale, and the bytes of a damaged record."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from tests.built_store import BuiltStore, Written
from tests.console.watched import Watched
from tests.query_server import serve_query

Look = Callable[..., Watched]
FILE_SIZE = 4096


@pytest.fixture
def damaged(store: BuiltStore) -> Iterator[tuple[str, Written]]:
    """Yield the URL, and a record with a changed body."""
    written = store.append("orders", b"to be changed" * 20)
    store.append("orders", b"behind it")
    store.write_log(written.physical_offset + 100, b"!")
    store.publish()
    (store.root / "tidemark" / "indexer" / "ledger-0.jsonl").write_text(
        f'{{"physical_offset": {written.physical_offset}, "size": {written.size}, "reason": "BODY_CRC", '
        f'"topic": "orders", "queue_id": 0, "queue_offset": 50, "found_ms": 1700000000000}}\n'
    )
    with serve_query(store.root) as client:
        yield str(client.base_url), written


def widths(page: Watched, selector: str) -> list[float]:
    """Return the widths of the drawn rectangles."""
    found: list[float] = page.main.locator(selector).evaluate_all(
        "all => all.map((one) => Number(one.getAttribute('width')))"
    )
    return found


def test_files_are_drawn_to_scale(look: Look, store: BuiltStore, url: str) -> None:
    """The written part of the last file is proportional to its width."""
    page = look(url, "#/log")
    files = widths(page, ".files rect.unwritten")
    data = widths(page, ".files rect.data")
    assert len(files) == len(data) == -(-store.end // FILE_SIZE) == 2
    assert data[-1] / files[-1] == pytest.approx((store.end - FILE_SIZE) / FILE_SIZE, abs=0.02)
    assert len(widths(page, ".files rect.blank")) == 1


def test_offset_marks_show_their_numbers(look: Look, store: BuiltStore, url: str) -> None:
    """An unknown flushed offset has no mark."""
    page = look(url, "#/log")
    lanes = [text.split() for text in page.main.locator(".lane-row").all_inner_texts()]
    end = f"{store.end:,}"
    assert lanes == [["Written", end], ["Flushed", "–"], ["Committed", end], ["Indexed", end]]


def test_records_are_drawn_to_scale_and_link_to_their_messages(look: Look, url: str) -> None:
    """A click leads there, and so do Tab, arrow key and Enter."""
    page = look(url, "#/log?from=0")
    blocks = page.main.locator("svg.records a")
    first = blocks.first.get_attribute("aria-label") or ""
    assert first.startswith("0, ") and "orders/0 at 0" in first
    blocks.first.focus()
    page.page.keyboard.press("ArrowRight")
    expect(page.main.locator(".description")).to_contain_text("orders/0 at 1")
    page.page.keyboard.press("Enter")
    expect(page.main.locator("tr.detail pre")).to_contain_text('"n": 1')


def test_the_drawing_is_also_shown_as_a_table(look: Look, store: BuiltStore, url: str) -> None:
    """Each piece is a row: the sizes add up to the whole log."""
    page = look(url, "#/log?from=0")
    expect(page.main.locator("summary")).to_have_count(2)
    for summary in page.main.locator("summary").all():
        summary.click()
    rows = page.main.get_by_role("region", name="Pieces of the log").locator("tbody tr")
    sizes = [int(text.replace(",", "")) for text in rows.locator("td:nth-child(2)").all_inner_texts()]
    assert sum(sizes) == store.end
    expect(page.main.get_by_role("region", name="Files of the log").locator("tbody tr")).to_have_count(2)


def test_damage_is_marked_in_the_log(look: Look, damaged: tuple[str, Written]) -> None:
    """The mark has its reason, and the colour of damage."""
    url, (place, size, *_) = damaged
    page = look(url, f"#/log?from={place}")
    block = page.main.locator("svg.records a").first
    expect(block.locator(".damaged")).not_to_have_count(0)
    name = block.get_attribute("aria-label") or ""
    assert name.startswith(f"{place:,}, {size:,} B: orders/0 at 50, ") and name.endswith("damaged: BODY_CRC")


def test_a_damaged_record_is_shown_byte_by_byte(look: Look, damaged: tuple[str, Written], store: BuiltStore) -> None:
    """The record is marked, with the bytes before and after it."""
    url, (place, *_) = damaged
    page = look(url, "#/damage")
    page.main.get_by_role("link", name=f"{place:,}").click()
    marked = page.main.locator("pre mark").text_content() or ""
    shown = bytes.fromhex("".join(line.split("  ")[1] for line in marked.splitlines()))
    log = b"".join(path.read_bytes() for path in sorted((store.root / "commitlog").iterdir()))
    assert shown == log[place : place + len(shown)] and b"!" in shown
    assert len(page.main.locator("pre").text_content() or "") > len(marked)


def test_the_damage_page_reports_no_damage(look: Look, url: str) -> None:
    expect(look(url, "#/damage").main.get_by_text("No damage.")).to_be_visible()
