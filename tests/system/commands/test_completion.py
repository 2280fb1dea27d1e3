"""The command line completes its own words in a shell."""

import os
import subprocess
import sys
from pathlib import Path


def test_a_command_is_completed() -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "biasmeter"],
        env=os.environ | {"_BIASMETER_COMPLETE": "complete_bash", "COMP_WORDS": "biasmeter rep", "COMP_CWORD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["report", "replay"] or done.stdout.split() == ["replay", "report"]
