"""Compile the optional C extensions with the compiler of this Python.

The build hook of the installation (``hatch_build.py``) loads this file by its path, before the package is installed.
"""

import os
import shlex
import subprocess
import sysconfig
from pathlib import Path

_GATEWAY = Path(__file__).parent
#: One file of C for each extension, which has its name and place.
SOURCES = (_GATEWAY / "_primitives.c", _GATEWAY / "recording" / "redaction" / "_prefilter.c")


def build_extension(source: Path, folder: Path, *options: str) -> Path:
    """Compile an extension into ``folder`` and return its path. ``CC`` replaces the compiler.

    Raises
    ------
    OSError, subprocess.CalledProcessError
        There is no compiler, or no header file of Python, or it fails.
    """
    made = folder / f"{source.stem}{sysconfig.get_config_var('EXT_SUFFIX')}"
    compiler, *linking = shlex.split(sysconfig.get_config_var("LDSHARED"))
    command = [*shlex.split(os.environ.get("CC", compiler)), *linking, "-O2", "-fPIC", *options]
    command += [f"-I{sysconfig.get_paths()['include']}", str(source), "-o", str(made)]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 -- the compiler of this Python
    return made
