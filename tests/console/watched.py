"""A page of the console under watch: any policy violation, exception or new window is a fault of the test."""

from __future__ import annotations

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Locator, Page, expect

_TELL_VIOLATIONS = """
addEventListener("securitypolicyviolation", (event) => {
  console.error(`violation of ${event.violatedDirective}: ${event.blockedURI} ${event.sample}`);
});
"""
TIME_ZONE = "Asia/Kathmandu"  # UTC+05:45 in every season
_TIMEOUT_MS = 15_000
expect.set_options(timeout=_TIMEOUT_MS)


class Watched:
    """A page with its faults."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.faults: list[str] = []
        self._url = url
        page.set_default_timeout(_TIMEOUT_MS)
        page.add_init_script(_TELL_VIOLATIONS)
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.faults.append(f"thrown: {error}"))
        page.on("dialog", self._on_dialog)
        page.context.on("page", lambda other: self.faults.append(f"opened: {other.url}"))

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:  # a refusal, which the page shows
            self.faults.append(message.text)

    def _on_dialog(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def go(self, place: str) -> None:
        """Go to a place of the console, as from an external link: '#/topics'."""
        self.page.goto(f"{self._url}/console{place}")
        self.settle()

    def settle(self) -> None:
        """Wait until the page has its heading and has finished loading."""
        expect(self.page.locator("h1").first).to_be_visible()
        self.page.wait_for_timeout(150)

    @property
    def main(self) -> Locator:
        """Return the area below the bar."""
        return self.page.locator("main")

    def text(self) -> str:
        """Return its whole visible text."""
        return self.main.inner_text()

    def button(self, name: str, *, within: Locator | None = None) -> Locator:
        """Return the first button of exactly this name."""
        return (within or self.page.locator("body")).get_by_role("button", name=name, exact=True).first

    def hash(self) -> str:
        """Return the place that it shows."""
        found: str = self.page.evaluate("location.hash")
        return found

    def close(self) -> None:
        """Raise AssertionError with the faults, if there are any."""
        self.page.context.close()
        assert self.faults == []


def watched(browser: Browser, url: str, *, dark: bool, width: int) -> Watched:
    """Return a page in its own context, which may write to the clipboard."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        timezone_id=TIME_ZONE,
        reduced_motion="reduce",
    )
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    return Watched(context.new_page(), url.rstrip("/"))
