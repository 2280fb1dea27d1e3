"""Compile the optional C of redaction, `gateway/redaction/_prefilter.c`, with the compiler of this Python.

The build hook of the installation (``hatch_build.py``) loads this file by its path, before the package is installed.
"""

import os
import shlex
import subprocess
import sysconfig
from pathlib import Path

_SOURCE = Path(__file__).with_name("_prefilter.c")


def build_prefilter(folder: Path, *options: str) -> Path:
    """Compile the module into ``folder`` and return its path. ``CC`` replaces the compiler.

    Raises
    ------
    OSError, subprocess.CalledProcessError
        There is no compiler, or no header file of Python, or it fails.
    """
    made = folder / f"_prefilter{sysconfig.get_config_var('EXT_SUFFIX')}"
    compiler, *linking = shlex.split(sysconfig.get_config_var("LDSHARED"))
    command = [*shlex.split(os.environ.get("CC", compiler)), *linking, "-O2", "-fPIC", *options]
    command += [f"-I{sysconfig.get_paths()['include']}", str(_SOURCE), "-o", str(made)]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 -- the compiler of this Python
    return made
