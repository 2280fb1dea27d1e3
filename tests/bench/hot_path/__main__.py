"""The hot path of the gateway, measured beside other proxies in the same run: ``make bench``."""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from bench.hot_path.conditions import conditions
from bench.hot_path.own_gateway import NAME
from bench.hot_path.page import page
from bench.hot_path.programs import NotHere
from bench.hot_path.proxies import COMMON, PEERS
from bench.hot_path.report import document
from bench.hot_path.run import Plan, run


def main() -> int:
    """Run, print the tables and write them to a folder; 1 when nothing can be measured, or the gateway did wrong."""
    asked = _arguments()
    peers = {name: PEERS[name] for name in asked.peers}
    plan = Plan(launchers=COMMON | peers, cycles=asked.cycles, seconds=asked.seconds)
    with tempfile.TemporaryDirectory(prefix="bias-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # as root, the embedded store runs under an account of its own
        try:
            results = run(plan, folder, lambda line: print(line, file=sys.stderr, flush=True))
        except NotHere as reason:
            print(f"bench: {reason}", file=sys.stderr)
            return 1
    found = document(plan, results, conditions())
    shown = page(found)
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "hot-path.json").write_text(json.dumps(found, indent=1) + "\n")
    (asked.out / "hot-path.md").write_text(shown)
    print(shown)
    for fault in results.faults():
        print(f"bench: {NAME}: {fault}", file=sys.stderr)
    return 1 if results.faults() else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hot_path", description=__doc__)
    parser.add_argument("--peers", type=_peers, default=[], help=f"installed for it: {','.join(PEERS)}, or all")
    parser.add_argument("--cycles", type=int, default=5, help="how often each scenario comes to each proxy")
    parser.add_argument("--seconds", type=float, default=5.0, help="of load in a round")
    parser.add_argument("--out", type=Path, default=Path("bench-results"), help="where the files go")
    return parser.parse_args()


def _peers(names: str) -> list[str]:
    chosen = list(PEERS) if names == "all" else [name for name in names.split(",") if name]
    for name in chosen:
        if name not in PEERS:
            raise argparse.ArgumentTypeError(f"no such peer: {name}; there are: {', '.join(PEERS)}")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
