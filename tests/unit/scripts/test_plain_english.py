from __future__ import annotations

from pathlib import Path

import pytest

from scripts.plain_english import hits_in

HARD = {
    "headless clause (what)": "It returns " + "what is committed.",
    "headless clause (who)": "It is for " + "who waits.",
    "another verb for report, log or return": "The answer " + "tells the offset.",
    "another verb for a place, to continue or to release": "The record " + "lies in the log.",
    "actor without a name": "No" + "body reads it.",
    "fragment without a verb": "From" + " any thread.",
}


FORMS = [("page.md", "{}"), ("module.py", "# {}"), ("text.py", '"""{}"""')]
A_FRAGMENT = "fragment without a verb"  # a comment may be one


@pytest.mark.parametrize(
    ("construction", "name", "form"),
    [(one, name, form) for one in HARD for name, form in FORMS if (one, name) != (A_FRAGMENT, "module.py")],
)
def test_each_construction_is_found(tmp_path: Path, construction: str, name: str, form: str) -> None:
    path = tmp_path / name
    path.write_text(form.format(HARD[construction]) + "\n")
    words, hits = hits_in(path)
    assert words >= 3
    assert [(hit.construction, hit.line) for hit in hits] == [(construction, 1)]


def test_code_and_short_texts_are_not_prose(tmp_path: Path) -> None:
    page, module = tmp_path / "page.md", tmp_path / "module.py"
    page.write_text(f"```\n{HARD['actor without a name']}\n```\nIt calls `{'no' + 'body'}`.\n")
    module.write_text(f"{'no' + 'body'} = '{'no' + 'body'}'\n")
    assert hits_in(page)[1] == hits_in(module)[1] == []
