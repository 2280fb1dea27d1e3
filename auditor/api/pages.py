"""Render the auditor's pages. Each is complete in itself: it has no script and loads nothing."""

from functools import lru_cache
from typing import Any, Final

from aiohttp import web
from jinja2 import ChoiceLoader, PackageLoader, Template

from auditor.report.templates import environment

_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def render_page(template: str, status: int = 200, **context: Any) -> web.Response:
    """Render a template of ``auditor/api/page``; text that is no UTF-8, as of a hostile answer, is replaced."""
    body = _template(template).render(status=status, **context).encode("utf-8", "replace")
    return web.Response(body=body, status=status, content_type="text/html", charset="utf-8", headers=_HEADERS)


@lru_cache(maxsize=16)
def _template(name: str) -> Template:
    loader = ChoiceLoader([PackageLoader("auditor.api", "page"), PackageLoader("auditor.report", "page")])
    return environment(loader).get_template(name)
