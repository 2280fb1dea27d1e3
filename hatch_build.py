"""Build the optional C of redaction where there is a compiler; without one the wheel is pure Python.

A wheel that contains it is tagged for its platform and version of Python; any other stays ``py3-none-any``.
"""

import subprocess
import tempfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PLACE = "gateway/redaction"


class PrefilterBuildHook(BuildHookInterface[Any]):
    """Compiles into the checkout for an editable installation, and for any other into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and name what has been compiled in ``build_data``."""
        folder = Path(self.root, _PLACE)
        if version != "editable":
            self._temporary = tempfile.TemporaryDirectory()
            folder = Path(self._temporary.name)
        try:
            made = self._build(folder)
        except (OSError, subprocess.CalledProcessError) as error:
            self.app.display_info(f"the optional C extension is left out: {error}")
            return
        if version != "editable":
            build_data["force_include"][str(made)] = f"{_PLACE}/{made.name}"
            build_data["pure_python"] = False
            build_data["infer_tag"] = True

    def _build(self, folder: Path) -> Path:
        spec = spec_from_file_location("prefilter_build", Path(self.root, _PLACE, "prefilter_build.py"))
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        made: Path = module.build_prefilter(folder)
        return made
