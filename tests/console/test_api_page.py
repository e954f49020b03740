"""/docs in a real browser: it shows the API without any other server, and calls it."""

from __future__ import annotations

from playwright.sync_api import Browser, expect

TIMEOUT_MS = 20_000


def test_the_page_of_the_api_needs_no_other_server(browser: Browser, url: str) -> None:
    page = browser.new_page()
    faults: list[str] = []
    elsewhere: list[str] = []
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "request", lambda request: None if request.url.startswith((url, "data:")) else elsewhere.append(request.url)
    )
    page.goto(f"{url}/docs")
    expect(page.get_by_text("Tidemark query").first).to_be_visible(timeout=TIMEOUT_MS)
    page.get_by_text("/v1/watermark").first.click()
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Execute").click()
    expect(page.locator(".live-responses-table tr.response .response-col_status").first).to_contain_text(
        "200", timeout=TIMEOUT_MS
    )
    assert (faults, elsewhere) == ([], [])
    page.close()
