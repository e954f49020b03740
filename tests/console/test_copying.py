"""Copied commands run elsewhere and request the same data, whatever text they contain."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.console.hostile import QUOTES, TEXTS
from tests.console.watched import Watched

Look = Callable[..., Watched]
RUNNERS = {"curl": ["bash", "-c"], "Python": [sys.executable, "-c"]}


def run(kind: str, text: str, folder: Path) -> Any:
    """Return the answer as JSON. Nothing else may happen."""
    done = subprocess.run([*RUNNERS[kind], text], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert list(folder.iterdir()) == []
    return json.loads(done.stdout)


def copied(page: Watched, kind: str, *, last: bool = False) -> str:
    """Return the clipboard's content after a click on its button."""
    buttons = page.main.get_by_role("button", name=f"Copy as {kind}", exact=True)
    (buttons.last if last else buttons.first).click()
    expect(page.page.locator("#said")).to_have_text(f"Copied as {kind}")
    text: str = page.page.evaluate("navigator.clipboard.readText()")
    return text


@pytest.mark.parametrize("kind", RUNNERS)
def test_a_copied_command_requests_one_message(look: Look, url: str, tmp_path: Path, kind: str) -> None:
    """The request has its queue and offset."""
    if kind == "curl" and shutil.which("curl") is None:
        pytest.skip("no curl")
    page = look(url, "#/messages?topic=orders&queue=0&value=4")
    page.main.locator(".opener").nth(1).click()
    folder = tmp_path / "run"
    folder.mkdir()
    answer = run(kind, copied(page, kind, last=True), folder)
    assert [(one["queue_offset"], one["body"]) for one in answer["messages"]] == [(5, '{"n": 5}')]


@pytest.mark.parametrize("kind", RUNNERS)
@pytest.mark.parametrize("text", TEXTS)
def test_a_hostile_key_in_a_copied_command_is_only_text(
    look: Look, hostile_url: str, tmp_path: Path, kind: str, text: str
) -> None:
    """Quotes, substitutions and line feeds reach the service unchanged, and it finds no key with a space."""
    if kind == "curl" and shutil.which("curl") is None:
        pytest.skip("no curl")
    page = look(hostile_url, "#/messages?topic=hostile&by=key")
    page.main.locator("input[name=value]").fill(f"{text} x")
    page.button("Show").click()
    expect(page.main.get_by_text("No message was found.")).to_be_visible()
    folder = tmp_path / "run"
    folder.mkdir()
    assert run(kind, copied(page, kind), folder)["messages"] == []


def test_copied_words_are_quoted_for_shell_and_python(look: Look, url: str) -> None:
    """Only the quoting is tested, also of characters that a URL would escape."""
    texts = [*TEXTS, "a\nb\tc", "ü€😀", "\\u0041", "", "-n", "$HOME", QUOTES * 3]
    page = look(url)
    words, literals = page.page.evaluate(
        "async (texts) => { const { shellWord, pythonText } = await import('./console/copying.js');"
        " return [texts.map(shellWord), texts.map(pythonText)]; }",
        texts,
    )
    for text, word, literal in zip(texts, words, literals, strict=True):
        shell_text = text.replace("\0", "")  # an argument cannot contain a NUL
        done = subprocess.run(["bash", "-c", f"printf %s {word.replace(chr(0), '')}"], capture_output=True, check=True)
        assert done.stdout.decode() == shell_text
        done = subprocess.run([sys.executable, "-c", f"print(ascii({literal}))"], capture_output=True, check=True)
        assert done.stdout.decode().strip() == ascii(text)
        assert literal.isascii()
