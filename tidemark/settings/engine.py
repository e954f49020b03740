"""TIDEMARK_PIPELINE: the engine of the pipeline, for the service, `tidemark serve` and a LocalStack."""

from __future__ import annotations

import enum


class Engine(enum.StrEnum):
    """The engine that runs the pipeline's tasks. plain: the service's own process, without Spark and Java."""

    SPARK = "spark"
    PLAIN = "plain"
