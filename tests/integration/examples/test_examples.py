"""Each example works, run as `make examples` runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.run import EXAMPLES, FOLDER, NOTEBOOKS, TIMEOUT_S, Example, run_example
from tidemark.local.local_stack import LocalStack

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

CASES = [pytest.param(one, marks=pytest.mark.exhaustive) if one.name == "flights_on_spark" else one for one in EXAMPLES]


@pytest.mark.timeout(TIMEOUT_S + 300)  # and the start of the services
@pytest.mark.parametrize("example", CASES, ids=lambda example: example.name)
def test_the_example_succeeds(example: Example, stack: LocalStack, tmp_path: Path) -> None:
    """Each checks its own result, and leaves no file in its working directory."""
    if example.missing:
        pytest.skip(f"there is no {' and no '.join(example.missing)} here")
    done = run_example(example, stack, tmp_path)
    assert done.returncode == 0, done.stdout
    assert list(tmp_path.iterdir()) == []


def test_every_program_is_run() -> None:
    """A new file must be listed. tests/console runs live_page.py, which needs a browser."""
    others = {
        "live_page.py",
        "__init__.py",
        "__main__.py",
        "run.py",
        "execute_notebook.py",
        "README.md",
        "__pycache__",
        NOTEBOOKS.name,
    }
    here = {path.stem for path in FOLDER.iterdir() if path.name not in others}
    here |= {path.stem for path in NOTEBOOKS.glob("*.ipynb")}
    assert here == {example.name for example in EXAMPLES}
