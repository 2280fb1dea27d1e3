"""Pages as an HTTP client gets them, for tests that need no browser."""

import re
from html import unescape

import httpx2

_INPUT = re.compile(r"<input\b[^>]*>")
_ATTRIBUTE = re.compile(r'\b(name|value)="([^"]*)"')


def texts(page: str, element: str) -> list[str]:
    """The texts of the elements whose opening tag begins with these words, as `p class="statement`."""
    name = element.partition(" ")[0]
    contents = re.findall(rf"<{re.escape(element)}(?![\w-])[^>]*>(.*?)</{name}>", page, re.DOTALL)
    return [unescape(re.sub(r"<[^>]+>", "", content)) for content in contents]


def fields(page: str, address: str) -> dict[str, str]:
    """The fields of the form that is sent to this address, as they stand on the page."""
    (form,) = re.findall(rf'<form\b[^>]*method="post" action="{re.escape(address)}"[^>]*>(.*?)</form>', page, re.DOTALL)
    inputs = [dict(_ATTRIBUTE.findall(tag)) for tag in _INPUT.findall(form)]
    return {unescape(attributes["name"]): unescape(attributes.get("value", "")) for attributes in inputs}


def send(client: httpx2.Client, page: str, address: str, **changed: str) -> httpx2.Response:
    """Send the form of a page with other values, and go where the answer leads."""
    answer = client.post(address, data=fields(page, address) | changed, follow_redirects=True)
    answer.raise_for_status()
    return answer
