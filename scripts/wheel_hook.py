"""Hatchling's hook for wheels: puts the compiled loops into the wheel, if this machine can compile them.

Such a wheel is for one platform and one version of Python, and does not require numba. Any other one has no machine
code, and requires numba with the extras that use the loops. TIDEMARK_EXTENSION=required makes that an error.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ExtensionHook(BuildHookInterface[Any]):
    """Adds the extension, the platform's tag and the changed requirement."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        missing = missing_for_extension()
        if missing:
            if os.environ.get("TIDEMARK_EXTENSION") == "required":
                raise RuntimeError(f"cannot compile the loops: {', '.join(missing)} not found")
            self.app.display_warning(f"the wheel needs numba, because {', '.join(missing)} was not found")
            return
        self._folder = tempfile.TemporaryDirectory()
        command = [sys.executable, "-m", "scripts.extension", self._folder.name]
        subprocess.run(command, cwd=self.root, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own
        (extension,) = Path(self._folder.name).iterdir()
        build_data["force_include"][str(extension)] = extension.name
        build_data |= {"pure_python": False, "infer_tag": True}
        for requirements in self.metadata.core.optional_dependencies.values():
            requirements[:] = [requirement for requirement in requirements if not requirement.startswith("numba")]

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if not build_data["pure_python"]:
            self._folder.cleanup()


def missing_for_extension() -> list[str]:
    """Return what the compilation needs and this machine does not have."""
    compilers = {(sysconfig.get_config_var(name) or "cc").split()[0] for name in ("CC", "CXX")}
    found = {
        "numba": importlib.util.find_spec("numba"),
        "setuptools": importlib.util.find_spec("setuptools"),
        **{f"the compiler {compiler}": shutil.which(compiler) for compiler in sorted(compilers)},
        "Python.h": (Path(sysconfig.get_path("include")) / "Python.h").exists(),
    }
    return [name for name, is_here in found.items() if not is_here]
