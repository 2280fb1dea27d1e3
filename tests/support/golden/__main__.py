"""`python -m support.golden record DIR [--tree DIR] [--cases CASE ...]`, `compare DIR DIR` and `expect`."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from support.paths import ROOT

from .cases import CASES, FAST, record
from .checkout import Checkout
from .comparison import differences
from .summary import write_expected


def main() -> int:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(prog="python -m support.golden", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="record the outputs of a checkout")
    recording.add_argument("out", type=Path)
    recording.add_argument("--cases", nargs="+", default=FAST, choices=CASES, help="default: all but the demonstration")
    recording.add_argument("--tree", type=Path, default=ROOT, help="the checkout; default: this one")
    comparing = commands.add_parser("compare", help="compare two recordings")
    comparing.add_argument("first", type=Path)
    comparing.add_argument("second", type=Path)
    commands.add_parser("expect", help="write the expected numbers of this checkout, which the test compares")
    chosen = parser.parse_args()
    if chosen.command == "expect":
        write_expected()
        return 0
    if chosen.command == "compare":
        found = list(differences(chosen.first, chosen.second))
        print("\n".join(found) or "no differences")
        return 1 if found else 0
    checkout = Checkout(chosen.tree.resolve())
    for name in chosen.cases:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="golden-") as work:
            Path(work).chmod(0o755)
            record(checkout, name, Path(work), chosen.out / name)
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
