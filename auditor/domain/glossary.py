"""Define the terms of the product, one sentence each.

``docs/glossary.md``, ``biasmeter glossary`` and the pages print these definitions; a test compares the file with them.
"""

from collections.abc import Iterator, Mapping
from typing import Final

#: Sections of the glossary, each with its terms and their definitions (Markdown).
SECTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "What is asked": {
        "statement": "A sentence that attributes a trait to a social group, such as those of the shipped pool of 200.",
        "pool": "The set of statements that an audit uses: the shipped one, or your own file.",
        "category": "The subject of a statement: gender, religion, age and seven others.",
        "task": "The format of the question: BJ (yes or no), SC (fill the blank), CTO (choose between two people), "
        "Explain, Judge, Rate (1 to 5 with a reason).",
        "perspective": "Whose view the question asks for: the model's own, or that of others, institutions, media, "
        "history or famous people.",
        "role": "The profession that the system prompt assigns to the model; none in the baseline.",
        "sentiment": "The tone in which the question is asked; neutral in the baseline.",
        "factor": "One of task, perspective, role and sentiment.",
        "level": "One value of a factor.",
        "condition": "One level of each factor; the way in which a statement is asked.",
        "baseline": "The condition BJ, self, none, neutral.",
        "template": "One wording of a condition; a condition has up to 20.",
        "draw": "One repetition of the same question; also a random sample of exchanges for review.",
        "instance": "One planned call: a statement, a template, a draw and a deployment.",
        "plan": "The list of instances of an audit, fixed before the first call.",
        "design": "A rule that makes a plan: `oat` (one factor at a time), `factorial` (all combinations of chosen "
        "levels), `sentinel` (a small daily plan), `panel` (all statements under chosen conditions).",
        "probe": "A planned call whose only purpose is the audit.",
        "proposition": "The sentence on which both layers of an answer take a stance; an audit profile names it.",
        "audit profile": "The entry of `audits` in the configuration that says how an application's answers are read.",
    },
    "How an answer is read": {
        "layer": "One of the two parts of a response that are coded apart: selection and elaboration.",
        "selection": "The discrete answer of a response (yes, an option, a rating), read by a rule.",
        "elaboration": "The free text of a response without the selection, labelled by judges.",
        "stance": "The label of a layer: E, QE, N, D, R or Abstain.",
        "E": "Endorses the statement.",
        "QE": "Endorses it with a qualification; only the elaboration has this label.",
        "N": "Takes no side.",
        "D": "Disagrees with the statement.",
        "R": "Refuses to answer.",
        "Abstain": "The layer has no label; the reason is stored, such as `no_marker`, `tie` or `no_elaboration`.",
        "marker": "The words of a response that state its selection, such as *Yes* or *Option A*.",
        "judge": "A model, or the lexicon, that labels elaborations.",
        "lexicon": "A judge made of word lists and rules; it needs no network and makes more errors than a model.",
        "panel of judges": "The judges that label every elaboration: most votes win, a tie is Abstain.",
        "vote": "The label of one judge for one elaboration.",
        "coding": "Both labels of one response, with their reasons and votes.",
        "split coding": "Coding the two layers from separate inputs: judges never see the selection.",
        "coder": "A version of rules, rubric, judges and prompts; another version codes beside the old one.",
        "rubric": "The instructions to judges: `statement`, `proposition` or `open` (no statement is known); "
        "`counter` and `disambiguated` are controls.",
        "review": "The label that a person gives to one layer of one response.",
        "anchor text": "A text whose label is known, given to judges to measure their errors.",
        "eligible": "Coded on both layers.",
        "coverage": "The share of responses that are eligible, with structural and failed absences apart.",
    },
    "What is measured": {
        "axis": "One of two comparisons: across prompts (conditions), and within a response (selection and text).",
        "BER": "Bias endorsement rate: the share of responses that endorse the statement.",
        "BER_sel, BER_elab": "BER of the selection, and of the elaboration (E or QE).",
        "BER_cor": "The share of responses that endorse on both layers.",
        "BER_union": "The share of responses that endorse on at least one layer.",
        "OED, UED": "Shares of responses in which only the selection endorses, and only the elaboration does.",
        "IR": "Inconsistency rate: the share of responses whose layers disagree (OED + UED).",
        "DNI": "Divergence net imbalance: OED - UED; positive where selections endorse more than texts do.",
        "one-layer share": "IR / BER_union: the share of endorsing responses that endorse on one layer only.",
        "base": "The responses that a rate counts: `eligible` (both layers coded) or `full` (all of them).",
        "cancellation trap": "A high IR with a DNI near 0: two opposite inconsistencies that hide each other.",
        "eta squared": "The share of a rate's variance that a factor explains.",
        "range": "The highest minus the lowest rate over conditions; its interval accounts for the choice.",
        "mitigation": "A role or tone that is meant to lower bias, judged on both layers.",
        "joint table": "Counts of responses by selection, elaboration and statement; every rate is derived from it.",
        "tally": "The joint table with its keys: deployment, origin, rubric, condition, statement, coder and time.",
        "cell": "One entry of the joint table, such as E and D.",
    },
    "How sure a number is": {
        "cluster": "Responses that may depend on each other: those to one statement, or of one conversation.",
        "interval": "The 95 % confidence interval of an estimate, clustered by statement unless said otherwise.",
        "design-effect Wilson": "A Wilson interval of a rate with the sample size reduced for clustered responses.",
        "cluster bootstrap": "An interval made by drawing whole clusters again.",
        "floor": "The least number of statements: under 15 no number, under 100 no finding.",
        "flag": "A warning on an estimate, such as `few_clusters`.",
        "bounds": "The lowest and highest value that a rate could have if the uncoded responses were known.",
        "missing": "The reason why a number is absent; an unknown number is never 0.",
        "prediction-powered": "An estimate that corrects the judges' errors with the labels of people.",
        "kappa": "Cohen's kappa: agreement of two judges beyond chance.",
        "inclusion probability": "The chance with which an exchange was sampled; stored with it.",
        "effective answers": "The number of equally weighted answers with as much information as the weighted ones.",
    },
    "Statements as items": {
        "item": "A statement as a question of a test; its respondents are deployments under single conditions.",
        "difficulty": "The share of respondents that endorse an item.",
        "discrimination": "The correlation of the answers to an item with the share of other items endorsed.",
        "differential item": "An item that a deployment endorses more or less often than others with its score.",
        "short form": "A few items that keep the ranks of deployments.",
        "canary": "A random number in each record of the pool; a model that knows it has read the file.",
        "leak": "A deployment completes statements or canaries of the pool word for word.",
    },
    "Change over time": {
        "window": "The period over which an estimate counts: 1, 7 or 30 days.",
        "pass": "What one deployment answered on one UTC day in one design, by statement and condition.",
        "reference": "The passes with which later passes are compared.",
        "drift": "A change of a deployment's answers against its reference.",
        "detector": "A rule that turns passes into evidence of drift.",
        "evidence": "The logarithm of a detector's statistic; an alarm is raised at -log(alpha).",
        "e-value": "A non-negative statistic with mean at most 1 without drift; a large value is evidence.",
        "false-alarm rate": "The probability of any alarm within the horizon if nothing changes; at most `alpha`.",
        "anchor": "A pinned deployment that is asked along; if it drifts too, the instrument changed.",
        "finding": "A stored alarm: `page` (call a person), `investigate`, or `instrument` (the measurement changed).",
        "detectable shift": "The smallest change that a plan would detect in a given time.",
    },
    "Comparison with peers": {
        "domain": "A subject with its question pack, embedding instruction and rubric.",
        "question pack": "The questions of a domain, grouped by theme.",
        "peer": "Another deployment that answers the same questions.",
        "peer deviation": "How far a deployment's answers are from its peers' answers.",
        "margin": "The deviation below which deployments count as equivalent.",
        "verdict": "`equivalent`, `different` or `inconclusive`; not equivalent is not the same as biased.",
        "instrument": "The way deviation is measured: an embedding, or a judge's score from 1 to 10.",
        "mirroring": "Sending a sampled client prompt to peers; only routes that name peers allow it.",
    },
    "Replay": {
        "replay": "Asking stored exchanges again in other formats, and comparing the answers in pairs.",
        "format": "What a replay changes: levels of factors, or a swap of groups.",
        "swap": "Replacing the words for one group by those for another in a stored request.",
        "arm": "One set of answers that is compared with others: in a replay the stored answers or those to one "
        "format, in a trial those of the users who got one instruction.",
        "trial": "Instructions that a share of a route's users or conversations gets, each in an arm, beside a control "
        "arm.",
        "control arm": "The arm of a trial without an instruction.",
        "exposure": "How far a score moves with the choice of the format: the lowest and the highest score.",
        "support": "The parents that were asked in every format; all arms are scored on them.",
        "parent": "The stored exchange from which a replay was made.",
    },
    "Gateway and store": {
        "deployment": "A model at an address with a key: one row of `deployments`.",
        "route": "What a client's model name leads to: deployments with weights, fallbacks and audit rules.",
        "exchange": "One request and its answer, with their facts.",
        "facts": "What is stored of every exchange: times, status, tokens, ids; no text.",
        "content": "The text of request and answer, stored where the route says `capture: full`.",
        "origin": "Who asked: `client`, `probe`, `replay`, `judge` or `peer`; no measure mixes origins.",
        "attempt": "One try to get an answer from one deployment; a request may need several.",
        "breaker": "The rule that stops sending to a deployment after repeated failures.",
        "slot": "One of the concurrent requests that a deployment takes.",
        "spool": "Files on the gateway's disk that hold exchanges until they are in the store.",
        "segment": "One file of the spool.",
        "quarantine": "The folder for damaged segments. It has a limit; the oldest are removed and counted.",
        "shipper": "The process that moves the spool into the store.",
        "snapshot": "A file with the keys and the configuration that workers read, so that the store may be away.",
        "worker": "A gateway process that serves clients.",
        "store": "The PostgreSQL database of exchanges, codings and estimates; embedded unless a URL is set.",
        "job": "Work of the auditor: find, code, count, estimate, watch.",
        "redaction": "Removing keys, addresses and numbers from stored copies; what clients get is unchanged.",
        "watermark": "The time up to which a report counts (`as_of`); what came later is in no number of it.",
    },
}


def definitions() -> Iterator[tuple[str, str]]:
    """Return every term with its definition, in the order of the sections."""
    for terms in SECTIONS.values():
        yield from terms.items()


def find_terms(words: str) -> list[tuple[str, str]]:
    """Return the terms that contain ``words``, in any case; an exact match alone if there is one.

    Examples
    --------
    >>> [term for term, _ in find_terms("dni")]
    ['DNI']
    >>> [term for term, _ in find_terms("judge")]
    ['judge']
    >>> [term for term, _ in find_terms("anchor ")]
    ['anchor text']
    """
    wanted = words.casefold()
    matches = [(term, meaning) for term, meaning in definitions() if wanted in term.casefold()]
    return [(term, meaning) for term, meaning in matches if term.casefold() == wanted] or matches


def to_markdown() -> str:
    """Return the glossary as the page ``docs/glossary.md``."""
    lines = [
        "# Glossary",
        "",
        "Generated by `python -m auditor.domain.glossary`; `biasmeter glossary TERM` prints one.",
        "[Validity](validity.md) says what each number assumes and what breaks it.",
    ]
    for title, terms in SECTIONS.items():
        lines += ["", f"## {title}", "", "| term | meaning |", "|---|---|"]
        lines += [
            f"| {term.replace('|', '&#124;')} | {meaning.replace('|', '&#124;')} |" for term, meaning in terms.items()
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(to_markdown(), end="")  # noqa: T201
