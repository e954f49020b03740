"""The names of `tidemark.client`."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tidemark.client


def test_every_name_is_there_and_in_dir() -> None:
    for name in tidemark.client.__all__:
        assert getattr(tidemark.client, name) is not None
    assert set(tidemark.client.__all__) <= set(dir(tidemark.client))
    with pytest.raises(AttributeError, match="has no attribute 'Produzer'"):
        _ = tidemark.client.Produzer  # type: ignore[attr-defined]


def test_a_producer_needs_no_consumer() -> None:
    program = (
        "import sys\nfrom tidemark.client import Producer\n"
        "assert not [name for name in sys.modules if name.startswith('tidemark.client.consumer')]"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
