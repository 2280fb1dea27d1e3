"""Run the fault suite at full length and write its results: ``python -m support.faults.report OUT``."""

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.faults import scenarios
from support.faults.harness import FULL, RESULTS

_TESTS = ("tests/slow/faults", "tests/bench/test_ship_throughput.py")

_HEAD = """# Reliability

What happens to exchanges when something fails. The fault suite (`tests/slow/faults`) runs the whole product (`biasmeter
up`: two workers, shipper, auditor, embedded PostgreSQL) under load from 24 clients, half of whose requests are streams,
and injects one kind of fault after the other. A run at full length writes this page
([Development](development.md#less-often)).

After each scenario the suite asserts:

- every answer that a client received in full is stored, or counted in `biasmeter_capture_total` as dropped;
- no exchange is stored twice;
- exchanges that ended = stored + counted as dropped. A killed worker may have written one exchange that it had not
  counted yet, so the counts may be lower by the number of killed workers;
- copies are dropped only where the spool could not be written (full or read-only disk, no inodes);
- no request of a well-behaved client fails, except where workers were killed;
- no process of the gateway logs a traceback.

`tests/slow/faults/test_estimates.py` fills one store while the shipper and its connections are killed, with every
record twice in the spool, and another store undisturbed: the estimates of both are equal to the last digit.
"""


def main() -> int:
    """Run the suite and write the page; return pytest's exit status."""
    out = Path(sys.argv[1])
    results = Path(tempfile.mkdtemp(prefix="biasmeter-faults-")) / "results.jsonl"
    environment = os.environ | {FULL: "1", RESULTS: str(results)}
    command = [sys.executable, "-m", "pytest", "-q", "-m", "", *_TESTS]
    status = subprocess.run(command, env=environment, check=False).returncode
    if status:
        sys.stderr.write(f"a test failed; {out} stays as it is, the results are in {results}\n")
        return status
    out.write_text(page([json.loads(line) for line in results.read_text().splitlines()]), encoding="utf-8")
    return 0


def page(results: Sequence[dict[str, Any]]) -> str:
    """Return the page in Markdown."""
    accounts = [one for one in results if "scenario" in one]
    described = {each.__name__: (each.__doc__ or "").strip() for each in scenarios.ALL}
    outage = max(one["outage_s"] for one in accounts if one["scenario"] == "store_is_away")
    (copy,) = [one for one in results if "copy_ratio" in one]

    def total(name: str) -> str:
        return f"{sum(one[name] for one in accounts):,}"

    lines = [
        _HEAD,
        "## Result",
        "",
        "| | |",
        "|---|---|",
        f"| faults injected | {total('injected')} |",
        f"| bad inputs | {total('bad_inputs')} |",
        f"| exchanges seen | {total('seen')} |",
        f"| stored | {total('stored')} |",
        f"| counted as dropped | {total('dropped')} |",
        "| neither stored nor counted | 0 |",
        f"| longest outage of the store | {outage:.0f} s |",
        "",
        f"The shipper moves {copy['rows']:,} exchanges of 1.5 KB at {copy['copy_ratio']:.2f} times the speed of a bare",
        f"`COPY` of the same rows (the fastest of {copy['rounds']} rounds of each).",
        "",
        f"Measured on {os.cpu_count()} processors that did other work too, Python {platform.python_version()}.",
        "Upstream, clients and store were on the same machine, so the rates say nothing about the gateway's limit.",
        "",
        "## Scenarios",
        "",
        "| scenario | faults | bad inputs | seen | stored | dropped | clients' errors | lasted, s | requests/s |",
        "|---|---|---|---|---|---|---|---|---|",
        *(
            f"| {described[one['scenario']]} | {one['injected']:,} | {one['bad_inputs']:,} | {one['seen']:,} | "
            f"{one['stored']:,} | {one['dropped']:,} | {one['client_errors']:,} | {one['outage_s']:.0f} | "
            f"{one['requests_a_second']:.0f} |"
            for one in accounts
        ),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
