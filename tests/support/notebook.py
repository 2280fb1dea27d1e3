"""Execute ``docs/biasmeter.ipynb`` and renew its outputs; with ``--check`` compare them instead."""

import sys

import nbformat
from nbclient import NotebookClient
from support.paths import DOCS

NOTEBOOK = DOCS / "biasmeter.ipynb"


def executed(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook with the outputs of now."""
    client = NotebookClient(notebook, timeout=240, kernel_name="python3", record_timing=False)
    return client.execute(cwd=str(NOTEBOOK.parents[1]))


def outputs(notebook: nbformat.NotebookNode) -> list[object]:
    return [cell.get("outputs") for cell in notebook.cells]


def main() -> None:
    stored = nbformat.read(NOTEBOOK, as_version=4)
    made = executed(nbformat.read(NOTEBOOK, as_version=4))
    # The kernel's version of Python is not part of the page.
    made.metadata = {"kernelspec": stored.metadata.get("kernelspec", {}), "language_info": {"name": "python"}}
    if "--check" not in sys.argv:
        nbformat.write(made, NOTEBOOK)
        return
    for number, (old, new) in enumerate(zip(outputs(stored), outputs(made), strict=True)):
        if old != new:
            sys.exit(f"{NOTEBOOK.name}: the output of cell {number} is not current (docs/development.md)")


if __name__ == "__main__":
    main()
