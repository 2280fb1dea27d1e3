"""Hooks of MkDocs: add the generated pages, and make the pages of the repository work as a site.

``docs/`` is also read on a code host, where links may lead out of it. Here such a link keeps its text only.
"""

import re
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from auditor.config.json_schema import config_schema_text
from website import commands, configuration, reference

_ROOT: Final = Path(__file__).parents[1]
#: Pages that are written from the code.
GENERATED: Final = {
    "configuration.md": configuration.page,
    "configuration.schema.json": config_schema_text,
    "commands.md": commands.page,
    "series.md": reference.series_page,
    "documents.md": reference.documents_page,
}


def on_config(config: Any) -> Any:
    """Add the design notes, newest first, and pages that the navigation does not name, to its end."""
    docs = Path(config["docs_dir"])
    named = set(re.findall(r"[\w-]+\.md", str(config["nav"])))
    notes = sorted((str(page.relative_to(docs)) for page in docs.glob("design/*.md")), reverse=True)
    others = sorted(page.name for page in docs.glob("*.md") if page.name not in named)
    config["nav"] += [{title: pages} for title, pages in (("Design notes", notes), ("More", others)) if pages]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages, and the front page from the README."""
    for name, write in GENERATED.items():
        files.append(File.generated(config, name, content=write()))
    files.append(File.generated(config, "index.md", content=_front_page()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Keep only the text of links that lead out of ``docs/``."""
    out = re.escape("../" * (1 + page.file.src_uri.count("/")))
    return re.sub(rf"\[([^\]]+)\]\({out}[^)]*\)", r"\1", markdown)


def _front_page() -> str:
    """Return the README with links that lead from ``docs/``."""
    text = (_ROOT / "README.md").read_text("utf-8").replace("](docs/", "](")
    return re.sub(r"\[([^\]]+)\]\((?!https?://)[A-Z]+\.md\)", r"\1", text)
