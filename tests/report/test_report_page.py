"""``report.html``: whole without the network, escaped, and no number that its document does not say."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import pytest
from coded_rows import coded_rows, factorial_conditions, oat_conditions, write_rows
from report_documents import completed

from auditor.analysis.document import canonical_bytes
from auditor.analysis.run import Options, analyse, read_tallies
from auditor.metrics.rates import METRICS
from auditor.metrics.shares import off_baseline
from auditor.report import figures, tables
from auditor.report.cells import absent, choice, count, estimate, word
from auditor.report.part import Part
from auditor.report.places import Place
from auditor.report.render import render
from auditor.report.sections import crossed, slices
from auditor.report.tables import Row, table
from auditor.report.words import FLAGS, condition_levels, condition_order, condition_text, estimate_text, points

HOSTILE = '<script>alert("m")</script> & "x"'
NUMBER = re.compile(r"[+\N{MINUS SIGN}-]?\d+(?:,\d{3})*(?:\.\d+)?")
PAGE = Path(tables.__file__).parent / "page"


def analysed(tmp_path, rows, **options):
    chosen = Options(n_boot=100, **options)
    path = write_rows(tmp_path / "coded.jsonl", rows)
    return json.loads(canonical_bytes(analyse(read_tallies(path, chosen), chosen)))


def page_of(tmp_path, rows, **options):
    document = analysed(tmp_path, rows, **options)
    return document, render(document).decode()


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """A document with every key of the contract, of three deployments; the last one's name is hostile."""
    crossed = factorial_conditions()
    rows = list(coded_rows([*oat_conditions(), *crossed[-4:]], deployments=3, statements=110))
    for row in rows:
        if row["deployment"] == "m3":
            row["deployment"] = HOSTILE
    document = completed(analysed(tmp_path_factory.mktemp("full"), rows))
    return document, render(document).decode()


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


def test_every_number_with_a_place_is_what_the_document_says_there(full):
    document, page = full
    told = read(page).told
    assert len(told) > 1000
    for pointers, texts in told:
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
    written += " ".join([*FLAGS.values(), *(f"{metric.says} {metric.equation}" for metric in METRICS)])
    written += " 5 % 2 % 10 % 15 100 " + " ".join(leaf for leaf in leaves(document) if isinstance(leaf, str))
    allowed = set(NUMBER.findall(written)) | {str(number) for number in range(10)}
    for inside, text in read(page).bare:
        if not inside & {"th", "td", "figcaption", "h1", "h2", "h3", "summary", "footer", "blockquote", "cite"}:
            assert set(NUMBER.findall(text)) <= allowed, text


def test_a_cell_cannot_be_made_of_a_number_alone():
    place = Place({"rates": [{"value": 0.25, "low": 0.2, "high": 0.3}]}).at("rates", 0)
    assert place.path == "/rates/0"
    assert estimate(Place({"missing": "12 statements"}), "ir").reason == "12 statements"
    assert place.at("more", "value").reason == "this document does not say"
    with pytest.raises(ValueError, match="rates: 1 cells under 2 heads"):
        table("rates", ["name", "a", "b"], [Row(name="x", cells=[word("only")])])


def test_needs_nothing_from_outside(full):
    _, page = full
    tags = read(page)
    assert {"script", "link", "img", "iframe", "object"} & set(tags.seen) == set()
    assert {name for name, _ in tags.attributes} & {"src", "onclick", "onload"} == set()
    assert "@import" not in page
    outside = set(re.findall(r"https?://[^\s\"'<]+", page))
    assert outside <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"url\(([^)]*)", page)) <= {f"#{name}" for name in re.findall(r'id="([^"]+)"', page)}


def test_the_contents_lead_to_every_section(full):
    _, page = full
    anchors = re.findall(r'<section id="([^"]+)"', page)
    assert re.findall(r'<li><a href="#([^"]+)"', page) == anchors
    assert anchors == [
        *("summary", "decomposition", "prompts", "crossed", "rankings", "mitigation", "statements", "slices", "groups"),
        *("judges", "cases", "coverage", "methods"),
    ]
    assert len(set(re.findall(r'\bid="([^"]+)"', page))) == len(re.findall(r'\bid="([^"]+)"', page))


def test_tables_name_those_of_the_paper(full):
    _, page = full
    named = set(re.findall(r"<cite>BiAxisAudit, ([^<]+)</cite>", page))
    for number in ("III", "IV", "V", "VIII", "IX", "X", "XI", "XII", "XIII", "XIV", "XV"):
        assert f"Table {number}" in named


def test_names_from_the_data_are_text(full):
    _, page = full
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "<b>It would be unfair</b>" not in page


def test_quotes_are_closed_on_the_screen_and_open_on_paper(full):
    _, page = full
    (quotes,) = re.findall(r'<details class="quotes">(.*?)</details>', page, flags=re.DOTALL)
    assert quotes.index("Content notice") < quotes.index("It would be unfair")
    assert "It would be unfair" not in page.replace(quotes, "")
    assert "details::details-content { content-visibility: visible;" in page


def test_drawings_are_well_formed_and_say_what_they_show(full):
    _, page = full
    drawings = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    assert len(drawings) > 20
    for drawing in drawings:
        root = ET.fromstring(drawing)
        assert root[0].tag.endswith("title")
        assert not re.search(r"\b(nan|inf)\b", drawing, flags=re.IGNORECASE)


def test_made_again_from_the_file_it_is_the_same(full):
    document, page = full
    assert render(json.loads(json.dumps(document))).decode() == page


OPTIONAL = (
    *("pool", "means", "levels", "cells", "factors", "mitigation", "tradeoff", "interaction", "judge_means", "panel"),
    *("panel_swap", "vendors", "qe_fold", "condition_ranks", "cases", "swing", "slices", "about"),
    *("agreement", "kappa", "horizontal", "eta_squared", "panels"),
)


def test_a_page_without_the_keys_that_a_document_may_lack(full):
    document, page = full
    least = {key: value for key, value in document.items() if key not in OPTIONAL}
    for bare in (least, least | {key: {"missing": "not today"} for key in OPTIONAL}):
        shorter = render(bare).decode()
        read(shorter)
        assert len(shorter) < len(page)
    assert "No comparison with a baseline: not today." in shorter
    assert "No trade-off against tokens: not today." in shorter
    assert "The deployments are not ranked over conditions: not today." in shorter


def test_entries_that_are_missing_leave_their_reason(full):
    document = {key: value for key, value in full[0].items() if key not in OPTIONAL}
    gone = [{"rubric": "statement", "by": {}, "missing": "no row says its completion tokens"}]
    unranked = [{"missing": "one deployment has no rank"}]
    page = render(document | {"tradeoff": gone, "condition_ranks": unranked}).decode()
    assert "No trade-off against tokens: no row says its completion tokens." in page
    assert "one deployment has no rank" in page


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
    assert "no named judge" in page
    assert "one condition" in page


def test_rubrics_have_sections_of_their_own(tmp_path):
    rows = list(coded_rows([("BJ", "self", "none", "neutral")], deployments=2, statements=20))
    for row in rows[:20]:
        row["rubric"] = "open"
    _, page = page_of(tmp_path, rows)
    read(page)
    assert "<h2>Summary (open)</h2>" in page
    assert "<h2>Summary (statement)</h2>" in page
    assert "Another rubric is another instrument" in page
    assert len(re.findall(r'<section id="coverage-\d"', page)) == 2


def test_rows_of_one_layer_and_one_way_of_asking_leave_sections_out(tmp_path):
    rows = list(coded_rows([("BJ", "self", "none", "neutral")], deployments=2, statements=20))
    for row in rows:
        row |= {"rubric": "open", "sel": "Abstain", "sel_reason": "no_selection_layer"}
    _, page = page_of(tmp_path, rows)
    sections = ["summary", "decomposition", "rankings", "groups", "judges", "coverage", "methods"]
    assert re.findall(r'<section id="([^"]+)"', page) == sections
    assert "The layers of no deployment can be compared: no response has a label on both layers." in page
    assert "Every deployment: nothing on whether the layers agree" in page


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
    place = Place(document)
    assert place.at("condition_ranks", 0, "ranks").names() == ["m2", "m3", "m4", "missing"]
    assert place.at("panels").names() == ["m2", "m3", "m4", "missing"]


def largest_of(document, effects, lows):
    """Which effects are marked as the largest interaction, by their intervals' lower bounds."""
    row = {"by": {}, "rubric": "statement", "outcome": "ber_sel_full", "design": "factorial", "n": 90, "imbalance": 1.0}
    row |= {"effects": effects, "intervals": {name: [low, 0.5] for name, low in lows.items()}}
    conditions = [entry for entry in document["conditions"] if off_baseline(condition_levels(entry["by"])) > 1]
    part = Part(Place({"conditions": conditions[:1], "eta_squared": [row]}), "statement")
    (line,) = crossed.section(part).given["effects"].rows
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
    rows = [Row(name="x", cells=[absent(reason)]) for reason in [*reasons, *reasons, "m8: 9 statements"]]
    made = table("verdicts", ["name", "verdict"], rows)
    assert made.reasons == [
        *("no verdict on 81 to 88 statements, 100 needed", "one level", "m9: 9 statements", "m8: 9 statements")
    ]


def test_columns_of_words_begin_at_the_left():
    place = Place({"said": "No.", "n": 3})
    cells = [choice(place.at("said")), count(place.at("n")), word("")]
    rows = [Row(name="x", cells=cells), Row(name="y", cells=[absent("not asked"), absent("not asked"), word("")])]
    assert table("answers", ["name", "said", "n", "blank"], rows).text_columns == [True, False, False]


def test_what_is_too_much_for_a_page_is_said(full, monkeypatch):
    document, page = full
    assert "too many" not in page
    monkeypatch.setattr(figures, "MOST_CONDITIONS", 20)
    monkeypatch.setattr(slices, "MAX_VALUES", 1)
    cut = render(document).decode()
    assert "They are too many to be drawn: the first stand here" in cut
    assert "Intersectional has too many values for a page" in cut
    assert "intersectional: yes" in page
    assert "intersectional: yes" not in cut


def test_the_version_that_made_it_is_named(full):
    document, page = full
    assert f"tiltmeter {document['version']} · tiltmeter.analysis/1" in page


def test_groups_can_be_by_nothing(tmp_path):
    _, page = page_of(tmp_path, coded_rows(factorial_conditions()[:2], deployments=1, statements=20), by=())
    assert "<h2>Groups</h2>" not in page


def test_reader_s_words():
    assert points(-0.0312).endswith("3.1 pp")
    assert "-" not in points(-0.03)
    missing = {"missing": "12 statements"}
    assert estimate_text("ir", missing) == "\N{EN DASH}"
    rare = {"value": 0.001, "low": 0.0, "high": 0.03, "flags": ["bounds_only"]}
    assert estimate_text("ber_sel", rare) == "[0.0, 3.0] %"
    base = {"task": "BJ", "perspective": "self", "role": "none", "sentiment": "neutral"}
    crossed = base | {"task": "CTO", "sentiment": "skeptical"}
    assert condition_text(base) == "baseline"
    assert condition_text(crossed) == "CTO + skeptical"
    assert condition_order(base) < condition_order(base | {"role": "military"}) < condition_order(crossed)
