"""The operating system's Chromium, driven by Playwright: for the console's tests and pictures. Downloads nothing."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator

from playwright.sync_api import Browser, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextlib.contextmanager
def open_browser() -> Iterator[Browser]:
    """A browser without a window. RuntimeError, which says what to do, where there is none."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        raise RuntimeError("no chromium was found: run scripts/chromium.sh")
    options = [] if os.getuid() else ["--no-sandbox"]  # Chromium has no sandbox for root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=options)
        try:
            yield browser
        finally:
            browser.close()
