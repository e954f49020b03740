"""The Java that Spark starts: its command and version."""

from __future__ import annotations

import os
import re
import subprocess

from tidemark.errors import StoreContradictionError

LEAST_VERSION = 17  # required by Spark 4
REMEDY = (
    "Spark needs Java 17 or 21 (a client none): install one, set JAVA_HOME, or run without Spark "
    "(tidemark serve --pipeline plain, TIDEMARK_PIPELINE=plain)"
)
_TIMEOUT_S = 20


def java_command() -> str:
    """Return the command that Spark would start."""
    home = os.environ.get("JAVA_HOME")
    return os.path.join(home, "bin", "java") if home else "java"


def require_java() -> int:
    """Return the major version of the installed Java.

    Raises:
        StoreContradictionError: no Java can be started, or it is older than LEAST_VERSION. Facts: setting, java.
    """
    java = java_command()
    try:
        text = subprocess.run(  # noqa: S603 - the user's own Java
            [java, "-version"], capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=False
        ).stderr
    except FileNotFoundError as error:
        raise _unfit(f"{java} cannot be started: there is no such command", java) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unfit(f"{java} cannot be started: {error}", java) from error
    version = java_version(text)
    if version is None or version < LEAST_VERSION:
        first_line = text.splitlines()[0] if text else "without a version"
        raise _unfit(f"{java} is {first_line}", java)
    return version


def java_version(text: str) -> int | None:
    """Return the major version in the output of `java -version`; 8 for the old form 1.8."""
    found = re.search(r' version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def _unfit(cause: str, java: str) -> StoreContradictionError:
    return StoreContradictionError(f"{cause}; {REMEDY}", setting="JAVA_HOME", java=java)
