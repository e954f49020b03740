"""`needs_numba`: for tests that call parts of loops, or numba's checks, which the extension does not have."""

from __future__ import annotations

import pytest

from tidemark.format.kernels import compiled

needs_numba = pytest.mark.skipif(compiled.extension is not None, reason="the extension has whole loops only")
