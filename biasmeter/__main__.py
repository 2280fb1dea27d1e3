"""Run one command: ``python -m biasmeter``."""

from biasmeter.cli import main

main()
