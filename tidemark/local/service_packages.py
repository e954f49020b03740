"""The packages that the services need, and a client does not."""

from __future__ import annotations

from importlib.util import find_spec

from tidemark.errors import StoreContradictionError

_EVERY_SERVICE, _QUERY, _SPARK = ("structlog", "isal", "numpy"), ("fastapi", "uvicorn", "pyarrow"), ("pyspark",)


def require_service_packages(*, query: bool, spark: bool) -> None:
    """Raise StoreContradictionError if packages of the services are not installed. Facts: packages.

    query: the query service is one of them; spark: the pipeline runs on Spark
    """
    wanted = (*_EVERY_SERVICE, *(_QUERY * query), *(_SPARK * spark))
    if missing := [name for name in wanted if find_spec(name) is None]:
        without = ", or --pipeline plain does without" if missing == [*_SPARK] else ""
        raise StoreContradictionError(
            f"the services need packages that are not installed: {', '.join(missing)}; "
            f"pip install 'tidemark[all]' installs them{without}",
            packages=", ".join(missing),
        )
