"""Writes the dashboard's JSON to the file that Grafana is provisioned with, or to the one that is named."""

import sys
from pathlib import Path

from deploy.grafana.dashboard import render

COMMITTED = Path(__file__).parent / "dashboards" / "tiltmeter.json"

if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else COMMITTED
    target.write_text(render(), encoding="utf-8")
