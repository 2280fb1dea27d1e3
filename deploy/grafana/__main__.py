"""Write the dashboards' JSON into the folder that Grafana is provisioned with, or into a given folder."""

import sys
from pathlib import Path

from deploy.grafana.dashboard import render

COMMITTED = Path(__file__).parent / "dashboards"

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else COMMITTED
    for name, text in render().items():
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
