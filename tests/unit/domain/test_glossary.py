"""The glossary's page is the glossary, and a term has one meaning."""

from collections import Counter

import pytest
from support.paths import ROOT
from typer.testing import CliRunner

from auditor.domain.glossary import definitions, to_markdown
from auditor.errors import UsageError
from biasmeter.commands.main import app


def test_the_page_is_generated():
    """`python -m auditor.domain.glossary > docs/glossary.md` makes it again."""
    assert (ROOT / "docs/glossary.md").read_text(encoding="utf-8") == to_markdown()


def test_a_term_is_defined_once_in_one_sentence():
    terms = Counter(term.casefold() for term, _ in definitions())
    assert [term for term, n in terms.items() if n > 1] == []
    assert all(meaning.endswith(".") for _, meaning in definitions())


def test_the_command_prints_one_term_or_all():
    one = CliRunner().invoke(app, ["glossary", "dni"])
    assert (one.exit_code, one.output.startswith("DNI: Divergence net imbalance")) == (0, True)
    everything = CliRunner().invoke(app, ["glossary"])
    assert all(f"  {term}: " in everything.output for term, _ in definitions())
    with pytest.raises(UsageError, match="no term 'mould'"):
        CliRunner().invoke(app, ["glossary", "mould"], catch_exceptions=False)
