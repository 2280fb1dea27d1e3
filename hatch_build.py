"""Build the optional C extensions where there is a compiler; without one the wheel is pure Python.

A wheel that contains them is tagged for its platform and version of Python; any other stays ``py3-none-any``.
"""

import subprocess
import tempfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ExtensionBuildHook(BuildHookInterface[Any]):
    """Compiles into the checkout for an editable installation, and for any other into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and name what has been compiled in ``build_data``."""
        building = self._building()
        self._temporary = tempfile.TemporaryDirectory()
        made: dict[str, str] = {}
        try:
            for source in building.SOURCES:
                place = source.parent.relative_to(self.root)
                folder = source.parent if version == "editable" else Path(self._temporary.name)
                extension = building.build_extension(source, folder)
                made[str(extension)] = str(place / extension.name)
        except (OSError, subprocess.CalledProcessError) as error:
            self.app.display_info(f"the optional C extensions are left out: {error}")
            return
        if version != "editable":
            build_data["force_include"].update(made)
            build_data["pure_python"] = False
            build_data["infer_tag"] = True

    def _building(self) -> ModuleType:
        spec = spec_from_file_location("c_build", Path(self.root, "gateway/c_build.py"))
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
