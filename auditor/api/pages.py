"""Render the auditor's pages in one frame, ``base.html.j2``. They load nothing but what the auditor itself serves."""

from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from aiohttp import web
from jinja2 import ChoiceLoader, PackageLoader, Template
from markupsafe import Markup

from auditor.api.context import CONFIG
from auditor.api.requests import ApiError
from auditor.api.session import CSRF, USER
from auditor.report.templates import environment

#: The pages of the navigation: address and title.
NAVIGATION: Final = (
    ("/", "Fleet"),
    ("/answers", "Answers"),
    ("/findings", "Findings"),
    ("/review", "Review"),
    ("/audits", "Audits"),
    ("/replays", "Replays"),
    ("/keys", "Keys"),
    ("/health", "Health"),
)
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_STATIC: Final = Path(__file__).with_name("static")


def routes() -> list[web.RouteDef]:
    """List the routes: the files that pages load."""
    return [web.get("/static/{name}", _static)]


def render_page(request: web.Request, template: str, status: int = 200, **context: Any) -> web.Response:
    """Render a template of ``auditor/api/page``; what HTML cannot hold, as of a hostile answer, is replaced.

    Besides ``context`` a template has ``user`` (None before a login), ``file`` (for ``-c`` in commands), ``navigation``
    and ``csrf_field()``.
    """
    user = request.get(USER)
    shown = _template(template).render(
        status=status,
        user=user,
        file=request.app[CONFIG]().file_argument,
        navigation=[(path, title, _is_at(request.path, path)) for path, title in NAVIGATION] if user else [],
        csrf_field=lambda: Markup('<input type="hidden" name="{}" value="{}">').format(CSRF, user.csrf if user else ""),
        **context,
    )
    body = shown.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace")
    headers = {"content-security-policy": _POLICY}
    return web.Response(body=body, status=status, content_type="text/html", charset="utf-8", headers=headers)


def _is_at(path: str, page: str) -> bool:
    return path == page or (page != "/" and path.startswith(page + "/"))


async def _static(request: web.Request) -> web.StreamResponse:
    file = _STATIC / request.match_info["name"]
    if file.parent != _STATIC or not file.is_file():
        raise ApiError(404, "There is no such file.", "not_found")
    return web.FileResponse(file, headers={"cache-control": "no-cache"})


@lru_cache(maxsize=64)
def _template(name: str) -> Template:
    loader = ChoiceLoader([PackageLoader("auditor.api", "page"), PackageLoader("auditor.report", "page")])
    return environment(loader).get_template(name)
