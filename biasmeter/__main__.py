"""Run one command: ``python -m biasmeter``."""

from biasmeter.commands.main import main

main()
