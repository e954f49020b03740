"""Opens the installed Chromium with Playwright, for the console's tests and pictures. Downloads nothing."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator

from playwright.sync_api import Browser, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextlib.contextmanager
def open_browser() -> Iterator[Browser]:
    """Open a headless browser. Raises RuntimeError with the remedy if none is installed."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        raise RuntimeError(f"none of {', '.join(_NAMES)} is in PATH: run scripts/chromium.sh to install one")
    options = [] if os.getuid() else ["--no-sandbox"]  # Chromium has no sandbox for root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=options)
        try:
            yield browser
        finally:
            browser.close()
