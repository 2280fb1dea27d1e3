"""Where things lie, so that no test counts folders upwards."""

from pathlib import Path

SUPPORT = Path(__file__).parent
TESTS = SUPPORT.parent
ROOT = TESTS.parent
DOCS = ROOT / "docs"
#: Answers of real models and labels of people: not in the repository. Tests that need them skip where they are absent.
SHARED = ROOT.resolve().parent / "shared"
