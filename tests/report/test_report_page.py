"""``report.html``: whole without the network, escaped, the same numbers as the document, well-formed drawings."""

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from coded_rows import coded_rows, factorial_conditions, oat_conditions, write_rows

from auditor.analysis.document import canonical_bytes
from auditor.analysis.run import Options, analyse, read_tallies
from auditor.report.render import render
from auditor.report.svg import Scale, element, shorten
from auditor.report.words import condition_order, condition_text, estimate_text, points

HOSTILE = '<script>alert("m")</script> & "x"'


def page_of(tmp_path, rows, **options):
    chosen = Options(n_boot=100, **options)
    path = write_rows(tmp_path / "coded.jsonl", rows)
    document = json.loads(canonical_bytes(analyse(read_tallies(path, chosen), chosen)))
    return document, render(document).decode()


@pytest.fixture(scope="module")
def oat(tmp_path_factory):
    rows = list(coded_rows(oat_conditions(), deployments=5, statements=120))
    for row in rows:
        if row["deployment"] == "m5":
            row["deployment"] = HOSTILE
    return page_of(tmp_path_factory.mktemp("oat"), rows)


VOID = {"meta", "br", "link", "img", "hr", "input"}


class Tags(HTMLParser):
    """Collects tags, and checks that they are closed in order."""

    def __init__(self):
        super().__init__()
        self.seen, self.open, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read(page):
    tags = Tags()
    tags.feed(page)
    tags.close()
    assert tags.open == []
    return tags


def test_needs_nothing_from_outside(oat):
    _, page = oat
    tags = read(page)
    assert {"script", "link", "img", "iframe", "object"} & set(tags.seen) == set()
    assert {name for name, _ in tags.attributes} & {"src", "href", "onclick", "onload", "style"} == set()
    assert "url(" not in page
    assert "@import" not in page
    outside = set(re.findall(r"https?://[^\s\"'<]+", page))
    assert outside <= {"http://www.w3.org/2000/svg"}


def test_names_from_the_data_are_text(oat):
    _, page = oat
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_drawings_are_well_formed_and_say_what_they_show(oat):
    _, page = oat
    drawings = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    assert len(drawings) == 5
    for drawing in drawings:
        root = ET.fromstring(drawing)
        assert root[0].tag.endswith("title")
        assert not re.search(r"\b(nan|inf)\b", drawing, flags=re.IGNORECASE)


def test_every_condition_and_deployment_is_drawn(oat):
    document, page = oat
    panels = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)[1]
    assert panels.count("<g transform") == 5
    names = {condition_text(entry["by"]) for entry in document["conditions"]}
    assert len(names) == 21
    for name in names:
        assert f">{name}<" in panels


def test_numbers_are_those_of_the_document(oat):
    document, page = oat
    for entry in document["deployments"]:
        union = entry["metrics"]["ber_union_full"]
        assert f"{100 * union['value']:.1f} %" in page
        assert f"[{100 * union['low']:.1f}, {100 * union['high']:.1f}]" in page


def test_warns_of_its_content_and_of_its_limits(oat):
    _, page = oat
    assert "Content notice" in page
    assert "not a certificate" in page


def test_made_again_from_the_file_it_is_the_same(oat):
    document, page = oat
    assert render(json.loads(json.dumps(document))).decode() == page


def test_factorial_shows_its_interactions(tmp_path):
    _, page = page_of(tmp_path, coded_rows(factorial_conditions(), deployments=1, statements=30))
    read(page)
    assert "task \N{MULTIPLICATION SIGN} sentiment" in page
    assert "The deployments are not ranked" in page


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
    assert page.count("Rubric:") == 2


def test_groups_can_be_by_nothing(tmp_path):
    _, page = page_of(tmp_path, coded_rows(factorial_conditions()[:2], deployments=1, statements=20), by=())
    assert "Groups" not in page


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


def test_drawing_parts():
    assert str(element("text", HOSTILE, x=1.5)) == (
        '<text x="1.5">&lt;script&gt;alert(&#34;m&#34;)&lt;/script&gt; &amp; &#34;x&#34;</text>'
    )
    scale = Scale(low=-0.05, high=0.05, start=0, end=100)
    assert scale(0) == pytest.approx(50)
    assert (scale(-1), scale(1)) == (0, 100)
    assert 0.0 in scale.ticks()
    assert shorten("short", 100) == "short"
