# ruff: noqa: E501 -- one case, one line
"""Every kind of mistake: the line it is told on, and the words that tell it."""

from pathlib import Path

import pytest

from auditor.config import load, loads
from auditor.errors import ConfigError

# Ten lines, so that what a case appends begins on line 11.
BASE = """\
# a configuration that holds
deployments:
  - name: gpt-4
    base_url: https://one.example/v1
    api_key: ${KEY}
  - {name: claude, base_url: "https://two.example/v1", model: c}
routes:
  - {model: fast, deployments: [{name: gpt-4, weight: 3}, {name: claude}], fallbacks: [slow]}
  - model: slow
    deployments: [claude]
"""
SECRET = "sk-do-not-show-this"
ENVIRON = {"KEY": SECRET, "EMPTY": "", "WORDS": "not a number", "HOME": "/home/someone"}

AUDIT = "audits: [{name: desk, proposition: {text: T}, %s}]\n"
PEERS = "peers: [{domain: p, questions: q.jsonl, deployments: [gpt-4, claude], %s}]\n"

# (what is appended, or a (from, to) replacement), line, words
CASES = {
    # the file
    "unknown key": ("gatway: {}\n", 11, 'gatway: unknown key; did you mean "gateway"?'),
    "unknown key, nothing near": ("zebra: 1\n", 11, "zebra: unknown key; known here: data_dir, store"),
    "unknown key that is null": ("zebra:\n", 11, "zebra: unknown key"),
    "unknown key inside": ("gateway:\n  listen: :1\n  lissten: :2\n", 13, 'gateway.lissten: unknown key; did you mean "listen"?'),
    "unknown key in a list": (("    api_key: ${KEY}", "    apikey: ${KEY}"), 5, 'deployments[0].apikey: unknown key; did you mean "api_key"?'),
    "unknown alias": (AUDIT % "selection: {json_path: $.a, map: {a: E}}", 11, "audits[0].selection.json_path: unknown key"),
    "unprintable key": ('"a\\nb": 1\n', 11, r'"a\nb": unknown key'),
    "key twice": ("seed: 1\nseed: 2\n", 12, "seed: is set twice (first on line 11)"),
    "key twice inside": (("    base_url:", "    name: x\n    base_url:"), 4, "deployments[0].name: is set twice (first on line 3)"),
    "key twice in another spelling": ('seed: 1\n"seed": 2\n', 12, "seed: is set twice"),
    "key that is a list": ("? [a]\n: 1\n", 11, "a key must be text"),
    "merge of text": ("gateway: {<<: a}\n", 11, "gateway: << merges mappings only"),
    "alias inside itself": ("probes: &p [*p]\n", 11, "probes[0]: an alias contains itself"),
    "merge of itself": ("gateway: &g {<<: *g}\n", 11, "gateway: an alias contains itself"),
    "tag": ("seed: !!python/object:os.system 1\n", 11, 'seed: the tag "python/object:os.system" is not allowed here'),
    "tag of another kind": ("gateway: !!set {a, b}\n", 11, 'gateway: the tag "set" is not allowed here'),
    "half a character": ('data_dir: "\\ud800"\n', 11, "data_dir: contains half a character"),
    # shapes
    "mapping expected": ("gateway: [1]\n", 11, "gateway: must be a mapping (key: value)"),
    "mapping expected, text given": ("monitor: on\n", 11, "monitor: must be a mapping (key: value)"),
    "list expected": ("probes: {plan: oat}\n", 11, "probes: must be a list ([a, b]"),
    "list expected, text given": (("fallbacks: [slow]", "fallbacks: slow"), 8, "routes[0].fallbacks: must be a list"),
    "text expected": (("name: gpt-4\n", "name: [gpt-4]\n"), 3, "deployments[0].name: must be text"),
    "null in a list": (("fallbacks: [slow]", "fallbacks: [~]"), 8, "routes[0].fallbacks[0]: must be text"),
    "missing": (("    base_url: https://one.example/v1\n", ""), 3, "deployments[0].base_url: is missing"),
    "missing because null": (("    base_url: https://one.example/v1", "    base_url:"), 4, "deployments[0].base_url: is missing"),
    "no deployments": ((BASE, "deployments: []\nroutes: []\n"), 1, "deployments: needs at least 1 (it has 0)"),
    "route to nobody": (("deployments: [claude]", "deployments: []"), 10, "routes[1].deployments: needs at least 1"),
    # numbers, switches, choices
    "whole number": ("gateway: {workers: two}\n", 11, "gateway.workers: must be a whole number"),
    "whole number, fraction given": ("seed: 1.5\n", 11, "seed: must be a whole number"),
    "whole number, switch given": ("seed: true\n", 11, "seed: must be a whole number"),
    "endless number": (f"seed: {'9' * 5000}\n", 11, "seed: is too large a number"),
    "too small": ("gateway: {workers: 0}\n", 11, "gateway.workers: must be at least 1"),
    "negative": ("seed: -1\n", 11, "seed: must be at least 0"),
    "too large": (("[slow]}", "[slow], sample: 1.5}"), 8, "routes[0].sample: must be at most 1"),
    "not finite": (("[slow]}", "[slow], sample: .nan}"), 8, "routes[0].sample: must be a number"),
    "not finite, Python's way": (("[slow]}", "[slow], sample: nan}"), 8, "routes[0].sample: must be a finite number"),
    "open interval": ("monitor: {alpha: 1}\n", 11, "monitor.alpha: must be less than 1"),
    "share of nothing": ("probes: [{plan: oat, share: 0}]\n", 11, "probes[0].share: must be greater than 0"),
    "half-width of nothing": ("probes: [{plan: oat, half_width: 0}]\n", 11, "probes[0].half_width: must be at least 0.005"),
    "switch": (("[slow]}", "[slow], judge: maybe}"), 8, "routes[0].judge: must be true or false"),
    "choice": (("[slow]}", "[slow], capture: hash}"), 8, 'routes[0].capture: must be one of off, hashed, full; did you mean "hashed"?'),
    "choice in a map": (AUDIT % "selection: {json: $.a, map: {a: QE}}", 11, "audits[0].selection.map.a: must be one of E, N, D, R"),
    # durations, sizes, addresses, URLs, names, secrets
    "duration": ("gateway: {drain: soon}\n", 11, "gateway.drain: must be a duration such as 30s"),
    "duration of a century": ("retention: {facts: 40000d}\n", 11, "retention.facts: must be at most 36500d"),
    "timeout of zero": ("gateway: {timeouts: {total: 0}}\n", 11, "gateway.timeouts.total: must be greater than 0"),
    "size": ("gateway: {spool: {max_bytes: 4 gigabytes}}\n", 11, "gateway.spool.max_bytes: must be a size such as 512MiB"),
    "address without a port": ("gateway: {listen: localhost}\n", 11, "gateway.listen: must be host:port"),
    "address with a port too high": ('auditor: {listen: "127.0.0.1:70000"}\n', 11, "auditor.listen.port: must be at most 65535"),
    "address without brackets": ('gateway: {listen: "::1:4000"}\n', 11, "gateway.listen: an IPv6 address needs brackets"),
    "address of no host": ('gateway: {listen: "a b:1"}\n', 11, 'gateway.listen: "a b" is not a host name'),
    "scheme": (("https://one", "ftp://one"), 4, "deployments[0].base_url: must start with http:// or https://"),
    "no host": (("https://one.example/v1", "https:///v1"), 4, "deployments[0].base_url: is not a URL"),
    "odd port": (("one.example/v1", "one.example:port/v1"), 4, "deployments[0].base_url: is not a URL"),
    "password in a URL": (("https://one", "https://me:hunter2@one"), 4, "deployments[0].base_url: contains a user name or password"),
    "query in a URL": (("one.example/v1", "one.example/v1?api-version=1"), 4, "deployments[0].base_url: must not end with a query"),
    "name": (("name: gpt-4\n", "name: gpt 4\n"), 3, "deployments[0].name: a name has 1 to 64 of the characters"),
    "reserved name": (("name: claude,", "name: all,"), 6, 'deployments[1].name: "all" means every deployment'),
    "model": (("model: slow", 'model: " slow"'), 9, "routes[1].model: must be 1 to 256 printable characters"),
    "header's name": (("    api_key: ${KEY}", '    headers: {"x y": z}'), 5, 'deployments[0].headers: "x y" is not the name of a header'),
    "header's value": (("    api_key: ${KEY}", '    headers: {x: "a\\nb"}'), 5, 'the value of "x" contains a character'),
    "secret with a space": (("${KEY}", '"sk-do-not-show-this "'), 5, "deployments[0].api_key: contains a space, a line break"),
    "secret that is a mapping": (("${KEY}", "{sk-do-not-show-this: 1}"), 5, "deployments[0].api_key: must be text"),
    "database": ("store: {url: 'mysql://sk-do-not-show-this'}\n", 11, "store.url: must start with postgresql://"),
    "webhook": ("monitor: {webhook: {url: sk-do-not-show-this}}\n", 11, "monitor.webhook.url: must start with http"),
    # the environment
    "variable unset": ("seed: ${NOWHERE}\n", 11, "seed: the environment variable NOWHERE is not set"),
    "variable empty": (("${KEY}", "${EMPTY}"), 5, "deployments[0].api_key: the environment variable EMPTY is empty"),
    "variable in a longer text": (("https://one", "https://${KEY}"), 4, 'base_url: "${KEY}" is inside a longer text'),
    "variable with a default": (("${KEY}", "${KEY:-none}"), 5, '"${KEY:-none}" does not name a variable'),
    "variable without a name": (("${KEY}", "${}"), 5, '"${}" does not name a variable'),
    "variable of the wrong kind": ("gateway: {workers: ${WORDS}}\n", 11, "gateway.workers: must be a whole number"),
    "variable as a choice": ("gateway: {auth: ${WORDS}}\n", 11, "gateway.auth: must be one of keys, open"),
    # names across sections
    "unknown deployment": (("name: gpt-4, weight", "name: gpt4, weight"), 8, 'routes[0].deployments[0].name: there is no deployment named "gpt4"; did you mean "gpt-4"?'),
    "unknown deployment, bare": (("deployments: [claude]", "deployments: [gemini]"), 10, 'routes[1].deployments[0]: there is no deployment named "gemini"; declared: gpt-4, claude'),
    "unknown fallback": (("[slow]", "[slwo]"), 8, 'routes[0].fallbacks[0]: there is no route named "slwo"; did you mean "slow"?'),
    "unknown peer": (("[slow]}", "[slow], peers: [claud]}"), 8, 'routes[0].peers[0]: there is no deployment or route named "claud"; did you mean "claude"?'),
    "unknown audit": (("[slow]}", "[slow], audit: desk}"), 8, 'routes[0].audit: there is no audit named "desk"; none is declared'),
    "unknown judge": ("judges: [{name: j1, deployment: claude}]\npanel: {judges: [j1, j2]}\n", 12, 'panel.judges[1]: there is no judge named "j2"; declared: j1, lexicon'),
    "judge on no deployment": ("judges: [{name: j1, deployment: clade}]\n", 11, 'judges[0].deployment: there is no deployment named "clade"; did you mean "claude"?'),
    "probe of no deployment": ("probes: [{plan: oat, deployments: [al]}]\n", 11, 'probes[0].deployments[0]: there is no deployment named "al"; did you mean "all"?'),
    "peers without a deployment": ("peers: [{domain: p, questions: q, embedding: {model: m}, deployments: [gpt-4, x]}]\n", 11, 'peers[0].deployments[1]: there is no deployment named "x"'),
    "peers without a judge": (PEERS % "judges: [j1]", 11, 'peers[0].judges[0]: there is no judge named "j1"; none is declared'),
    "peers judged by a word list": (PEERS % "judges: [lexicon]", 11, 'peers[0].judges[0]: "lexicon" is a judge of stances only; it cannot score answers'),
    "embedding on no deployment": (PEERS % "embedding: {deployment: embedder}", 11, "peers[0].embedding.deployment: there is no deployment named"),
    "embedding without a model": (PEERS % "embedding: {deployment: gpt-4}", 11, 'peers[0].embedding.deployment: deployment "gpt-4" has no model, which the embedder needs'),
    "peers with one of them twice": ("peers: [{domain: p, questions: q, embedding: {model: m}, deployments: [gpt-4, claude, gpt-4]}]\n", 11, 'peers[0].deployments[2]: "gpt-4" is listed twice'),
    "peers judged twice by one": ("judges: [{name: j, deployment: claude}]\n" + PEERS % "judges: [j, j]", 12, 'peers[0].judges[1]: "j" is listed twice'),
    "embedding by nothing": (PEERS % "embedding: {instruction: Represent}", 11, "peers[0].embedding: needs exactly one of model, deployment"),
    "embedding by two": (PEERS % "embedding: {model: m, deployment: claude}", 11, "peers[0].embedding: needs exactly one of model, deployment"),
    "embedding of pairs by a deployment": (PEERS % "embedding: {deployment: claude, pooling: pairs}", 11, "peers[0].embedding: max_tokens and pooling: pairs are for a model that runs here"),
    "embedding of mirrored answers": (("[slow]}", "[slow], mirror: {embedding: {deployment: e}}}"), 8, "routes[0].mirror.embedding.deployment: there is no deployment named"),
    "anchor": ("monitor: {anchor: claude-3}\n", 11, 'monitor.anchor: there is no deployment named "claude-3"; did you mean "claude"?'),
    "deployment twice": (("name: claude,", "name: gpt-4,"), 6, 'deployments[1].name: "gpt-4" is declared twice (first as deployments[0])'),
    "route twice": (("model: slow", "model: fast"), 9, 'routes[1].model: "fast" is declared twice (first as routes[0])'),
    "judge twice": ("judges: [{name: j, deployment: claude}, {name: j, deployment: claude}]\n", 11, 'judges[1].name: "j" is declared twice'),
    "built-in judge on a deployment": ("judges: [{name: lexicon, deployment: claude}]\n", 11, 'judges[0]: "lexicon" is the built-in judge'),
    "judge without a model": ("judges: [{name: j1, deployment: gpt-4}]\n", 11, 'judges[0].deployment: deployment "gpt-4" has no model'),
    "judge without a deployment": ("judges: [{name: j1}]\n", 11, "judges[0]: needs deployment (the model that judges)"),
    "judge by its bare name": ("judges: [j1]\n", 11, "judges[0]: must be a mapping (key: value)"),
    "judge twice on the panel": ("panel: {judges: [lexicon, lexicon]}\n", 11, 'panel.judges[1]: "lexicon" is on the panel twice'),
    "nobody on the panel": ("panel: {judges: []}\n", 11, "panel.judges: needs at least 1"),
    "deployment twice in a route": (("deployments: [claude]", "deployments: [claude, claude]"), 10, 'routes[1].deployments[1]: "claude" is listed twice'),
    "weights of zero": (("weight: 3}, {name: claude}", "weight: 0}, {name: claude, weight: 0}"), 8, "routes[0].deployments: at least one weight must be greater than 0"),
    "negative weight": (("weight: 3", "weight: -3"), 8, "routes[0].deployments[0].weight: must be at least 0"),
    "fallback to itself": (("[slow]", "[fast]"), 8, "routes[0].fallbacks[0]: a route cannot be its own fallback"),
    # sections that contradict themselves
    "regular expression": (AUDIT % "selection: {regex: '(', map: {a: E}}", 11, "audits[0].selection.regex: is not a regular expression"),
    "regular expression that does not print": (AUDIT % 'selection: {regex: "[z-\\x1b]", map: {a: E}}', 11, r"bad character range z-\x1b"),
    "two places for an answer": (AUDIT % "selection: {regex: a, json: $.b, map: {a: E}}", 11, "audits[0].selection: needs exactly one of json, regex, options"),
    "options unlike the map": (AUDIT % "selection: {options: [a, b], map: {a: E, c: D}}", 11, "in one of them only: b, c"),
    "selection without a proposition": ("audits: [{name: x, selection: {json: $.a, map: {a: E}}}]\n", 11, "audits[0]: a selection needs a proposition"),
    "empty proposition": ("audits: [{name: x, proposition: {}}]\n", 11, "audits[0].proposition: needs exactly one of request, text"),
    "empty text": ("audits: [{name: x, proposition: {text: ''}}]\n", 11, "audits[0].proposition.text: must not be empty"),
    "cluster of nothing": (AUDIT % "cluster: {tag: a, request: $.user}", 11, "audits[0].cluster: needs exactly one of tag, request"),
    "peers within no margin": (PEERS % "embedding: {model: m}, margins: {embedding: 0}", 11, "peers[0].margins.embedding: must be greater than 0"),
    "margin of nobody": (PEERS % "embedding: {model: m}, margins: {j1: 1}", 11, "peers[0]: margins: j1 is not one of embedding"),
    "peers compared by nothing": (PEERS % "every: 1d", 11, "peers[0]: needs an embedding or judges"),
    "window twice": ("monitor: {windows: [1d, 24h]}\n", 11, "monitor.windows: lists a window twice"),
    "content outlives facts": ("retention: {content: 90d, facts: 30d}\n", 11, "retention: content must not be kept longer than facts"),
}  # fmt: skip

# Each of these is wrong in a second place as well: names that are gone are missed elsewhere.
MANIFOLD = {"text expected", "no deployments", "name", "reserved name", "model", "deployment twice", "route twice"}

SYNTAX = {
    "tab": ("gateway:\n\tworkers: 1\n", "12:1", "a tab is used where only spaces are allowed"),
    "colon": ("data_dir: a: b\n", "11:12", "a colon is not allowed here"),
    "quote": ('data_dir: "a\nseed: 1\n', "11:11", "the quote or bracket that opens here is never closed"),
    "bracket": ("gateway: {workers: 1\nseed: 1\n", "12:5", "expected ',' or '}'"),
    "bracket at the end": ("gateway: {workers: 1\n", "11:10", "the quote or bracket that opens here is never closed"),
    "star": ("x: *\n", "11:5", "quote text that begins with"),
    "alias": ("x: *y\n", "11:4", "found undefined alias 'y'"),
    "sign": ("x: @y\n", "11:4", "quote text that begins with"),
    "second document": ("---\na: 1\n", "11:1", "a second document begins here"),
    "control character": ("x: \x07\n", "11:4", "character U+0007 is not allowed in YAML"),
    "indentation": ("x:\n    a: 1\n  b: 2\n", "13:3", "not valid YAML"),
    "depth": ("x: " + "[" * 100 + "]" * 100 + "\n", "11:66", "nested more than 64 levels deep"),
}


def text_of(change: str | tuple[str, str]) -> str:
    if isinstance(change, str):
        return BASE + change
    old, new = change
    assert old in BASE
    return BASE.replace(old, new, 1)


def refuse(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        loads(text, source="biasmeter.yaml", folder=Path("/etc"), environ=ENVIRON)
    return str(caught.value).splitlines()


def test_the_base_holds():
    assert loads(BASE, source="t", folder=Path("/etc"), environ=ENVIRON).config.routes[0].fallbacks == ("slow",)


@pytest.mark.parametrize("case", CASES)
def test_mistake(case):
    change, line, words = CASES[case]
    told = refuse(text_of(change))
    assert [one for one in told if one.startswith(f"biasmeter.yaml:{line}: ") and words in one], told
    assert SECRET not in "".join(told)
    assert "hunter2" not in "".join(told)
    assert "not a number" not in "".join(told)  # values from variables are never shown
    assert len(told) == 1 or case in MANIFOLD, told


@pytest.mark.parametrize("case", SYNTAX)
def test_syntax(case):
    change, place, words = SYNTAX[case]
    (told,) = refuse(text_of(change))
    assert told.startswith(f"biasmeter.yaml:{place}: ")
    assert words in told


@pytest.mark.parametrize("text", ["", "   \n", "# nothing but a comment\n", "---\n", "null\n"])
def test_empty(text):
    (told,) = refuse(text)
    assert told.startswith("biasmeter.yaml:1: the file is empty") or "must be a mapping" in told


@pytest.mark.parametrize("text", ["- a\n", "just words\n", "42\n"])
def test_not_a_mapping(text):
    assert refuse(text) == ["biasmeter.yaml:1: must be a mapping: lines of the form key: value"]


def test_everything_is_told_together_in_the_order_of_the_lines():
    text = (
        BASE.replace("https://one", "ftp://one").replace("[slow]", "[slwo]")
        + "seed: 0\nseed: 1\nport: 3\nstore: {url: ${KEY}}\n"
    )
    told = refuse(text)
    assert [line.split(": ")[0].removeprefix("biasmeter.yaml:") for line in told] == ["4", "8", "12", "13", "14"]


def test_at_most_twenty_problems_are_told():
    told = refuse(BASE + "".join(f"key_{index}: 1\n" for index in range(30)))
    assert len(told) == 21
    assert told[-1] == "biasmeter.yaml: and 10 more problems"


def test_what_follows_from_a_problem_is_not_told():
    assert refuse(BASE.replace("https://one.example/v1", "${NOWHERE}")) == [
        "biasmeter.yaml:4: deployments[0].base_url: the environment variable NOWHERE is not set"
    ]


def test_aliases_that_blow_up():
    bomb = 'a0: &a0 ["lol"]\n' + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10))
    told = refuse(BASE + bomb)
    assert any("aliases expand the file to more than 100000 values" in line for line in told)


def test_merges_that_blow_up():
    bomb = "a0: &a0 {k: 1}\n" + "".join(
        f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}]}}\n" for i in range(1, 12)
    )
    refuse(BASE + bomb)


class TestFiles:
    def tell(self, path: Path) -> str:
        with pytest.raises(ConfigError) as caught:
            load(path, ENVIRON)
        return str(caught.value)

    def test_missing(self, tmp_path):
        assert self.tell(tmp_path / "t.yaml") == f"{tmp_path}/t.yaml: no such file; pass the configuration with -c"

    def test_below_a_file(self, tmp_path):
        (tmp_path / "f").write_text("x")
        assert "t.yaml: cannot be read: Not a directory" in self.tell(tmp_path / "f" / "t.yaml")

    def test_folder(self, tmp_path):
        assert self.tell(tmp_path) == f"{tmp_path}: is a folder, not a YAML file"

    def test_nul_in_the_name(self):
        assert "cannot be read" in self.tell(Path("a\0b"))

    def test_too_large(self, tmp_path):
        path = tmp_path / "t.yaml"
        path.write_text(BASE + "#" * 1024 * 1024)
        assert "t.yaml: is larger than 1024 KiB" in self.tell(path)

    def test_not_utf8(self, tmp_path):
        path = tmp_path / "t.yaml"
        path.write_bytes(BASE.encode() + b"data_dir: caf\xe9\n")
        assert self.tell(path) == f"{path}:11: byte 0xe9 is not UTF-8"

    def test_utf16(self, tmp_path):
        path = tmp_path / "t.yaml"
        path.write_bytes(BASE.encode("utf-16"))
        assert self.tell(path) == f"{path}:1: byte 0xff is not UTF-8"

    def test_byte_order_mark_and_windows_lines(self, tmp_path):
        path = tmp_path / "t.yaml"
        path.write_bytes(b"\xef\xbb\xbf" + BASE.replace("\n", "\r\n").encode() + b"seed: x\r\n")
        assert self.tell(path) == f"{path}:11: seed: must be a whole number"
