"""Redaction of captured requests and answers: JSON, event streams or other text, complete or truncated.

The text is searched, not parsed, so truncated JSON works too. All other bytes stay unchanged.
"""

import re
from collections.abc import Sequence

from gateway.recording.redaction.search import STRING, Searcher, Span, replace_spans
from gateway.recording.redaction.streams import Stream, redact_deltas

_DIGITS = frozenset("0123456789")
#: Non-empty log probabilities: they repeat an answer token by token.
_LOGPROBS = re.compile(rb'"logprobs"\s*+:\s*+(?=\{|\[(?!\s*+\]))')
_BRACKET_OR_STRING = re.compile(STRING.pattern.encode() + rb"|([{\[])|[}\]]")


def redact_content(content: bytes, searcher: Searcher) -> bytes:
    """Redact JSON or any other text."""
    if not searcher.suspects(content):
        return content
    # Invalid UTF-8, such as half a character at the end of a copy, stays as it is.
    text = content.decode(errors="surrogateescape")
    spans = searcher.find(text)
    if text.lstrip().startswith(("{", "[", "data:")):
        spans = _quote_numbers(text, spans)
    return replace_spans(text, spans).encode(errors="surrogateescape")


def redact_events(stream: Stream, searcher: Searcher) -> bytes:
    """Redact the events of a stream, each by itself and their joined texts."""
    redact_deltas(stream, searcher)
    joined = b"".join(stream.lines)
    if not searcher.suspects(joined):
        return joined
    return b"".join(redact_content(line, searcher) for line in stream.lines)


def _quote_numbers(text: str, spans: Sequence[Span]) -> list[Span]:
    """Quote a placeholder that replaces a number, so that the JSON stays valid."""
    numbers = {span for span in spans if _DIGITS.issuperset(text[span.start : span.end])}
    if not numbers:
        return list(spans)
    strings = STRING.finditer(text)
    quoted: list[Span] = []
    string = next(strings, None)
    for span in spans:
        while string is not None and string.end() <= span.start:
            string = next(strings, None)
        bare = span in numbers and (string is None or span.start < string.start())
        quoted.append(span._replace(placeholder=f'"{span.placeholder}"') if bare else span)
    return quoted


def drop_logprobs(answer: bytes) -> bytes:
    """Replace log probabilities by ``null``, because their tokens repeat the redacted text."""
    pieces: list[bytes] = []
    at = 0
    while (match := _LOGPROBS.search(answer, at)) is not None:
        pieces += answer[at : match.end()], b"null"
        at = _end_of_value(answer, match.end())
    return b"".join((*pieces, answer[at:]))


def _end_of_value(json: bytes, start: int) -> int:
    depth = 0
    for token in _BRACKET_OR_STRING.finditer(json, start):
        if json[token.start()] == 0x22:  # a string
            continue
        depth += 1 if token[2] else -1
        if depth == 0:
            return token.end()
    return len(json)
