"""``report.html``: whole without the network, escaped, and no number that its document does not say."""

import json
import re
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qsl, unquote
from xml.etree import ElementTree as ET

import pytest
from msgspec import structs
from support.documents.json_entries import typed
from support.documents.report_documents import completed
from support.worlds.coded_rows import coded_rows, factorial_conditions, oat_conditions, write_rows

from auditor.counting.conditions import off_baseline
from auditor.documents.agreement import PanelEntry
from auditor.documents.analysis import AnalysisDocument
from auditor.documents.base import Missing
from auditor.documents.codec import canonical_bytes, decode
from auditor.documents.conditions import (
    MissingAgreement,
    MissingConditionRank,
    MissingMitigation,
    MissingTradeoff,
    VarianceShareEntry,
)
from auditor.documents.estimates import BoundedEntry, FlaggedEntry
from auditor.domain.glossary import definitions
from auditor.estimation.analysis import Options, analyse, read_tallies
from auditor.metrics.rates import METRICS
from auditor.report import crossed, prompts, slices, tables
from auditor.report.analysis import PeriodContext, render_analysis
from auditor.report.document import MOST_DRAWN, condition_levels, with_places
from auditor.report.links import ConsoleLinks
from auditor.report.tables import TableRow, bounded, count, estimate_cell, no_value, table, text_cell, word_cell
from auditor.report.wording import FLAGS, condition_order, condition_text, estimate_text, points

HOSTILE = '<script>alert("m")</script> & "x"'
NUMBER = re.compile(r"[+\N{MINUS SIGN}-]?\d+(?:,\d{3})*(?:\.\d+)?")
PAGE = Path(tables.__file__).parent / "page"


ABOUT = PeriodContext(
    period="1 to 31 March 2026",
    origin="Answers to planned questions (probes)",
    about={"from": "2026-03-01", "to": "2026-04-01", "facts": "9f86d081884c7d65"},
    console=ConsoleLinks(url="https://console.example", filters={"origin": "probe", "from": "2026-03-01"}),
)


def analysed(tmp_path, rows, **options):
    chosen = Options(n_boot=100, **options)
    path = write_rows(tmp_path / "coded.jsonl", rows)
    return canonical_bytes(analyse(read_tallies(path, chosen), chosen))


def page_of(tmp_path, rows, **options):
    content = analysed(tmp_path, rows, **options)
    return json.loads(content), render_analysis(decode(content, AnalysisDocument, "analysis.json")).decode()


def page_from(document):
    """The page of a document that is given as JSON values."""
    return render_analysis(typed(document, AnalysisDocument), ABOUT).decode()


@pytest.fixture(scope="module")
def full(tmp_path_factory, thorough):
    """A document with every key of the contract, of three deployments; the last one's name is hostile."""
    crossed = factorial_conditions()
    rows = list(coded_rows([*oat_conditions(), *crossed[-4:]], deployments=3, statements=110 if thorough else 40))
    for row in rows:
        if row["deployment"] == "m3":
            row["deployment"] = HOSTILE
    document = completed(json.loads(analysed(tmp_path_factory.mktemp("full"), rows)))
    return document, page_from(document)


#: Lists that no document has empty.
NEEDED = ("groups", "deployments", "conditions", "by")
VOID = {"meta", "br", "link", "img", "hr", "input"}


class Tags(HTMLParser):
    """Collects tags and the texts of what says a place; checks that tags are closed in order."""

    def __init__(self):
        super().__init__()
        self.seen, self.open, self.attributes = [], [], []
        self.told, self.bare = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))
            if "data-v" in dict(attrs):
                self.told.append((dict(attrs)["data-v"], []))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, text):
        inside = {tag for tag, _ in self.open}
        if any("data-v" in attributes for _, attributes in self.open):
            self.told[-1][1].append(text)
        elif not inside & {"style", "title", "svg"}:
            self.bare.append((inside, text))


@cache
def read(page):
    tags = Tags()
    tags.feed(page)
    tags.close()
    assert tags.open == []
    return tags


def found(document, pointer):
    """Follow a pointer as RFC 6901 says."""
    value = document
    for token in pointer.split("/")[1:]:
        key = unquote(token).replace("~1", "/").replace("~0", "~")
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def leaves(value):
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for each in value for leaf in leaves(each)] if isinstance(value, list) else [value]


def says(token, number):
    """Whether a number of the document, or a hundred times it, is what is printed, as far as it is printed."""
    sign = token.replace("\N{MINUS SIGN}", "-").replace(",", "")
    half = 0.5 * 10 ** -len(sign.partition(".")[2]) + 1e-9
    return any(abs(float(sign) - scale * number) <= half for scale in (1, 100))


def numbers_of(values):
    return [leaf for leaf in leaves(values) if isinstance(leaf, int | float) and not isinstance(leaf, bool)]


def test_every_number_with_a_place_is_what_the_document_says_there(full, thorough):
    document, page = full
    told = read(page).told
    assert len(told) > 1000
    for pointers, texts in told if thorough else told[::4]:
        values = [found(document, pointer) for pointer in pointers.split()]
        words = {leaf for leaf in leaves(values) if isinstance(leaf, str)}
        for line in texts:
            if line.strip() in words or "< 0.001" in line:
                continue
            names = "|".join(re.escape(each) for each in sorted(words, key=len, reverse=True))
            for token in NUMBER.findall(re.sub(names, "", line) if names else line):
                assert any(says(token, number) for number in numbers_of(values)), (pointers, texts, token)


def test_an_estimate_is_printed_in_its_order(full):
    document, page = full
    checked = 0
    for pointers, texts in read(page).told:
        entry = found(document, pointers.split()[0])
        if isinstance(entry, dict) and "method" in entry:
            tokens = NUMBER.findall(" ".join(texts))
            order = ([] if "bounds_only" in entry["flags"] else ["value"]) + ["low", "high"]
            assert all(says(token, entry[name]) for token, name in zip(tokens, order, strict=False)), (entry, texts)
            checked += 1
    assert checked > 500


def test_no_cell_has_a_number_without_a_place(full):
    _, page = full
    for inside, text in read(page).bare:
        if "td" in inside:
            assert not re.search(r"\d", text), text


def test_sentences_have_no_number_of_their_own(full):
    """What is said outside of tables is written in the templates, or is a word of the document."""
    document, page = full
    written = "\n".join(path.read_text() for path in sorted((PAGE / "sections").glob("*.j2")))
    written += " ".join(
        [
            *FLAGS.values(),
            *dict(definitions()).values(),
            ABOUT.period,
            *ABOUT.about.values(),
            *(f"{metric.help} {metric.equation}" for metric in METRICS.values()),
        ]
    )
    written += " 5 % 2 % 10 % 15 100 " + " ".join(leaf for leaf in leaves(document) if isinstance(leaf, str))
    allowed = set(NUMBER.findall(written)) | {str(number) for number in range(10)}
    for inside, text in read(page).bare:
        if not inside & {"th", "td", "figcaption", "h1", "h2", "h3", "summary", "footer", "blockquote", "cite"}:
            assert set(NUMBER.findall(text)) <= allowed, text


def test_a_cell_cannot_be_made_of_a_number_alone():
    entry = BoundedEntry(value=0.25, low=0.2, high=0.3)
    assert bounded(with_places(entry, "/rates/0"), points).path == "/rates/0"
    for alone in (lambda: bounded(entry, points), lambda: count(3), lambda: text_cell("word")):
        with pytest.raises(TypeError, match="comes from no document"):
            alone()
    assert estimate_cell(Missing(missing="12 statements"), "ir").reason == "12 statements"
    with pytest.raises(ValueError, match="rates: 1 cells under 2 heads"):
        table("rates", ["name", "a", "b"], [TableRow(name="x", cells=[word_cell("only")])])


def test_needs_nothing_from_outside(full):
    _, page = full
    tags = read(page)
    assert {"script", "link", "img", "iframe", "object"} & set(tags.seen) == set()
    assert {name for name, _ in tags.attributes} & {"src", "onclick", "onload"} == set()
    assert "@import" not in page
    outside = set(re.findall(r"https?://[^\s\"'<]+", page.replace('<a href="https://console.example/', "")))
    assert outside <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"url\(([^)]*)", page)) <= {f"#{name}" for name in re.findall(r'id="([^"]+)"', page)}


def test_the_contents_lead_to_every_section(full):
    _, page = full
    anchors = re.findall(r'<section id="([^"]+)"', page)
    assert re.findall(r'<li><a href="#([^"]+)"', page) == anchors
    assert anchors == [
        *(
            "summary",
            "results",
            "decomposition",
            "prompts",
            "generalizability",
            "crossed",
            "rankings",
            "mitigation",
            "direction",
            "slices",
            "judges",
        ),
        *("design", "coverage", "statements", "groups", "cases", "methods", "origin"),
    ]
    assert len(set(re.findall(r'\bid="([^"]+)"', page))) == len(re.findall(r'\bid="([^"]+)"', page))


def test_tables_name_those_of_the_paper(full):
    _, page = full
    named = set(re.findall(r"<cite>BiAxisAudit, ([^<]+)</cite>", page))
    for number in ("I", "III", "IV", "V", "VIII", "IX", "X", "XI", "XII", "XIII", "XIV", "XV"):
        assert f"Table {number}" in named


def test_names_from_the_data_are_text(full):
    _, page = full
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "<b>It would be unfair</b>" not in page


def test_quotes_are_closed(full):
    _, page = full
    (quotes,) = re.findall(r'<details class="quotes">(.*?)</details>', page, flags=re.DOTALL)
    assert quotes.index("Content notice") < quotes.index("It would be unfair")
    assert "It would be unfair" not in page.replace(quotes, "")


def test_drawings_are_well_formed_and_say_what_they_show(full):
    _, page = full
    drawings = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    assert len(drawings) > 20
    for drawing in drawings:
        root = ET.fromstring(drawing)
        assert root[0].tag.endswith("title")
        assert not re.search(r"\b(nan|inf)\b", drawing, flags=re.IGNORECASE)


def test_made_again_from_the_file_it_is_the_same(full, thorough):
    document, page = full
    assert page_from(json.loads(json.dumps(document))) == (page if thorough else page_from(document))


def test_results_that_are_missing_leave_their_reason(full):
    document, page = full
    gone = {"rubric": "statement", "missing": "not today"}
    empty = {key: [] for key, value in document.items() if isinstance(value, list) and key not in NEEDED}
    missing = {
        "mitigation": [MissingMitigation(**gone, by={}, factor="task", levels=[])],
        "tradeoff": [MissingTradeoff(**gone, by={}, outcome="ber_sel_full")],
        "condition_ranks": [MissingConditionRank(**gone, metric="ber_union_full")],
        "agreement": [MissingAgreement(**gone, by={}, metrics=[], deployments=[])],
    }
    least = structs.replace(typed(document | empty, AnalysisDocument), **missing)
    shorter = render_analysis(least).decode()
    read(shorter)
    assert len(shorter) < len(page)
    assert "There is no comparison with a reference level: not today." in shorter
    assert "The rates cannot be compared with tokens: not today." in shorter
    assert "The deployments are not ranked over conditions: not today." in shorter
    assert "The deployments are not ranked by layer: not today." in shorter


def test_warns_of_its_content_and_of_its_limits(full):
    _, page = full
    assert "Content notice" in page
    assert "not a certificate" in page


def test_factorial_shows_its_interactions(tmp_path):
    _, page = page_of(tmp_path, coded_rows(factorial_conditions(), deployments=1, statements=30))
    read(page)
    assert "task \N{MULTIPLICATION SIGN} sentiment" in page
    assert "No ranking of the deployments" in page


@pytest.mark.parametrize("statements", [1, 14, 16])
def test_a_page_with_hardly_any_estimate(tmp_path, statements):
    rows = coded_rows([("Explain", "self", "none", "neutral")], deployments=1, statements=statements, judges=0)
    _, page = page_of(tmp_path, rows)
    read(page)
    assert "does not name the judges" in page
    assert "one condition" in page


@pytest.mark.slow
def test_many_deployments_are_all_in_the_tables_and_not_all_drawn(tmp_path):
    _, page = page_of(tmp_path, coded_rows([*oat_conditions()[:2]], deployments=MOST_DRAWN + 2, statements=16))
    read(page)
    assert f"the drawings have the first {MOST_DRAWN} by name, the tables have all" in page
    tables, drawings = re.sub("(?s)<svg.*?</svg>", "", page), "".join(re.findall("(?s)<svg.*?</svg>", page))
    names = sorted(f"m{number}" for number in range(1, MOST_DRAWN + 3))
    assert all(re.search(rf"\b{name}\b", tables) for name in names)
    assert {name for name in names if re.search(rf"\b{name}\b", drawings)} == set(names[:MOST_DRAWN])


def test_rubrics_have_sections_of_their_own(tmp_path):
    rows = list(coded_rows([("BJ", "self", "none", "neutral")], deployments=2, statements=20))
    for row in rows[:20]:
        row["rubric"] = "open"
    _, page = page_of(tmp_path, rows)
    read(page)
    assert "<h2>Summary (open)</h2>" in page
    assert "<h2>Summary (statement)</h2>" in page
    assert "Do not compare numbers of different rubrics" in page
    assert len(re.findall(r'<section id="coverage-\d"', page)) == 2


def test_rows_of_one_layer_and_one_way_of_asking_leave_sections_out(tmp_path):
    rows = list(coded_rows([("BJ", "self", "none", "neutral")], deployments=2, statements=20))
    for row in rows:
        row |= {"rubric": "open", "sel": "Abstain", "sel_reason": "no_selection_layer"}
    _, page = page_of(tmp_path, rows)
    sections = ["summary", "results", "decomposition", "rankings", "judges", "coverage", "groups", "methods", "origin"]
    assert re.findall(r'<section id="([^"]+)"', page) == sections
    assert "No deployment has layers that can be compared: no response has a label on both layers." in page
    assert "Every deployment: no result on whether the layers agree" in page


@pytest.mark.parametrize("claim", ["stereotype", "other"])
def test_a_proposition_without_a_claim_has_divergence_and_no_rates(tmp_path, claim):
    rows = coded_rows([("BJ", "self", "none", "neutral")], deployments=2, statements=110)
    _, page = page_of(tmp_path, ({**row, "rubric": "proposition", "claim": claim} for row in rows))
    read(page)
    assert "DNI by deployment: how far" in page
    assert ("BER of selection and of elaboration by deployment" in page) == (claim == "stereotype")


def test_names_that_are_words_of_the_document(tmp_path):
    """A deployment, a judge and a level called ``missing`` are no reason why something is."""
    rows = list(coded_rows(oat_conditions()[:9], deployments=4, statements=20))
    for row in rows:
        row["deployment"] = "missing" if row["deployment"] == "m1" else row["deployment"]
        row["perspective"] = "missing" if row["perspective"] == "media" else row["perspective"]
        row["votes"] = [
            vote | {"judge": "missing" if vote["judge"] == "j0" else vote["judge"]} for vote in row["votes"]
        ]
    document, page = page_of(tmp_path, rows, by=("deployment",))
    read(page)
    assert document["condition_ranks"][0]["ranks"].keys() == {"missing", "m2", "m3", "m4"}
    assert 'data-v="/condition_ranks/0/ranks/missing/best"' in page


def largest_of(document, effects, lows):
    """Which effects are marked as the largest interaction, by their intervals' lower bounds."""
    row = VarianceShareEntry(
        by={}, rubric="statement", outcome="ber_sel_full", base="full", design="factorial", flags=[], n=90,
        effects=effects, intervals={name: (low, 0.5) for name, low in lows.items()}, imbalance=1.0,
    )  # fmt: skip
    conditions = [entry for entry in document["conditions"] if off_baseline(condition_levels(entry["by"])) > 1]
    least = {"conditions": conditions[:1], "interaction": [], "cells": []}
    part = structs.replace(typed(document | least, AnalysisDocument), eta_squared=[row])
    (line,) = crossed.section(with_places(part)).values["effects"].rows
    return [cell.path.split()[0].rpartition("/")[2] for cell in line.cells if "largest" in cell.kind]


def test_an_interaction_is_in_bold_where_it_is_shown_to_be_one(full):
    document, _ = full
    effects = {"task": 0.3, "task:role": 0.02, "task:sentiment": 0.01}
    assert largest_of(document, effects, {"task": 0.2, "task:role": 0, "task:sentiment": 0.004}) == ["task%3Asentiment"]
    assert largest_of(document, effects, {"task": 0.2, "task:role": 0.001, "task:sentiment": 0}) == ["task%3Arole"]
    assert largest_of(document, effects, {"task": 0.2, "task:role": 0, "task:sentiment": 0}) == []
    assert largest_of(document, {"task": 0.3, "task:role": 0.0004}, {"task": 0.2, "task:role": 0.0001}) == []


def test_a_mean_of_deployments_has_no_number_of_responses(full):
    _, page = full
    rows = re.findall(r'<tr class="mean"><th scope="row">mean of deployments</th>(.*?)</tr>', page)
    assert len(rows) > 3
    assert not [row for row in rows if "n = " in row]
    assert "n = " in re.search(r'<tr class="pooled"><th scope="row">pooled by responses</th>.*?<small>n = ', page)[0]


def test_reasons_that_differ_in_a_number_are_told_once():
    reasons = [*(f"no verdict on {n} statements, 100 needed" for n in (88, 81, 86)), "one level", "m9: 9 statements"]
    rows = [TableRow(name="x", cells=[no_value(reason)]) for reason in [*reasons, *reasons, "m8: 9 statements"]]
    made = table("verdicts", ["name", "verdict"], rows)
    assert made.reasons == [
        *("no verdict on 81 to 88 statements, 100 needed", "one level", "m9: 9 statements", "m8: 9 statements")
    ]


def test_columns_of_words_begin_at_the_left():
    panel = with_places(PanelEntry(layer="elab", deployment=None, n_judges=3, rho=0.5, n_eff=1.5))
    cells = [text_cell(panel.layer), count(panel.n_judges), word_cell("")]
    rows = [
        TableRow(name="x", cells=cells),
        TableRow(name="y", cells=[no_value("not asked"), no_value("not asked"), word_cell("")]),
    ]
    assert table("answers", ["name", "said", "n", "blank"], rows).text_columns == [True, False, False]


@pytest.mark.slow
def test_what_is_too_much_for_a_page_is_said(full, monkeypatch):
    document, page = full
    assert "too many" not in page
    monkeypatch.setattr(prompts, "MOST", 20)
    monkeypatch.setattr(slices, "MAX_VALUES", 1)
    cut = page_from(document)
    assert "There are too many to draw: the drawing has the first ones" in cut
    assert "Intersectional has too many values for a page" in cut
    assert "intersectional: yes" in page
    assert "intersectional: yes" not in cut


def test_the_version_that_made_it_is_named(full):
    document, page = full
    assert f"<dd>biasmeter {document['version']}</dd>" in page
    assert "<dd>biasmeter.analysis/1</dd>" in page


def test_groups_can_be_by_nothing(tmp_path):
    _, page = page_of(tmp_path, coded_rows(factorial_conditions()[:2], deployments=1, statements=20), by=())
    assert "<h2>Appendix. Groups</h2>" not in page


def test_reader_s_words():
    assert points(-0.0312).endswith("3.1 pp")
    assert "-" not in points(-0.03)
    assert estimate_text("ir", Missing(missing="12 statements")) == "\N{EN DASH}"
    rare = FlaggedEntry(value=0.001, low=0.0, high=0.03, flags=["bounds_only"])
    assert estimate_text("ber_sel", rare) == "[0.0, 3.0] %"
    base = {"task": "BJ", "perspective": "self", "role": "none", "sentiment": "neutral"}
    crossed = base | {"task": "CTO", "sentiment": "skeptical"}
    assert condition_text(base) == "baseline"
    assert condition_text(crossed) == "CTO + skeptical"
    assert condition_order(base) < condition_order(base | {"role": "military"}) < condition_order(crossed)


def test_rates_lead_to_the_answers_that_they_count(full):
    document, page = full
    links = re.findall(r'data-v="([^" ]+)[^>]*>(?:<b>)?<a href="https://console.example/answers\?([^"]+)"', page)
    cells = {"ber_union_full": "union", "ir": "n10,n01", "ber_sel": "n11,n10", "ber_elab_full": "elab_E"}
    seen = set()
    for pointer, query in links:
        asked = dict(parse_qsl(unescape(query)))
        assert (asked.pop("origin"), asked.pop("from")) == ("probe", "2026-03-01")
        entry, metric = found(document, pointer.rpartition("/metrics/")[0]), pointer.rpartition("/")[2]
        seen.add(metric)
        assert cells.get(metric) in (asked.pop("cell"), None)
        assert asked == {**{key: str(value) for key, value in entry["by"].items()}, "rubric": entry["rubric"]}
    assert set(cells) <= seen
    assert "dni" not in seen


def test_page_one_stands_alone(full):
    _, page = full
    first = page[: page.index('<nav aria-label="Contents">')]
    (answer,) = re.findall(r'<div class="answer">(.*?)</div>', first, flags=re.DOTALL)
    assert answer.count("<p>") == 3
    assert "Answers to planned questions (probes), 1 to 31 March 2026" in first
    assert "What must not be claimed from these results" in first
    assert "9f86d081884c7d65" not in first
    assert "9f86d081884c7d65" in page


def test_factors_that_were_not_varied_are_left_out(tmp_path):
    asked = [(task, "self", "none", "neutral") for task in ("BJ", "SC", "CTO")]
    _, page = page_of(tmp_path, coded_rows(asked, deployments=2, statements=20))
    assert "η² task" in page
    for factor in ("perspective", "role", "sentiment"):
        assert f"η² {factor}" not in page
        assert f'<th scope="row">{factor}</th>' not in page


def test_one_condition_is_called_the_baseline(full):
    """Levels are compared with a reference; for tasks that is another level than the baseline's."""
    _, page = full
    assert re.search(r"[A-Z]+ \(reference\)", page)
    assert "(baseline)" not in page
