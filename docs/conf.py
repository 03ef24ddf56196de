"""The site of these pages, as `make docs` builds it: everything is in it, nothing is fetched to read it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphinx import addnodes
from sphinx.search.en import SearchEnglish

if TYPE_CHECKING:
    from docutils.nodes import document
    from sphinx.application import Sphinx

HERE = Path(__file__).parent

project = "chatproc"
html_title = "chatproc"
language = "en"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
suppress_warnings = ["misc.highlighting_failure"]  # an example may leave out what stands around it
myst_heading_anchors = 4
myst_links_external_new_tab = False

html_theme = "furo"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_search_language = "mixed"
html_show_search_summary = False  # a browser reads no other page of a site on a disk


class Mixed(SearchEnglish):
    """English by words, Chinese by pairs of characters: a search for 报告 finds it inside a sentence."""

    lang = "mixed"
    js_splitter_code = """
function splitQuery(query) {
  const words = query.match(/[a-zA-Z0-9_]+|[\\u3400-\\u9fff]+/g) || [];
  return words.flatMap((word) => {
    if (word.charCodeAt(0) < 0x3400 || word.length < 3) return [word];
    return Array.from({ length: word.length - 1 }, (_, at) => word.slice(at, at + 2));
  });
}
"""

    def split(self, input: str) -> list[str]:  # noqa: A002 - Sphinx calls it so
        """Words of Latin letters, and each pair of neighbouring Chinese characters."""
        words = []
        for word in re.findall(r"[a-zA-Z0-9_]+|[\u3400-\u9fff]+", input):
            chinese = word[0] >= "\u3400" and len(word) > 1
            words += [word[at : at + 2] for at in range(len(word) - 1)] if chinese else [word]
        return words

    def word_filter(self, word: str) -> bool:
        """One Chinese character is a word too."""
        return word[0] >= "\u3400" or super().word_filter(word)


def unlink_repository(app: Sphinx, name: str, source: list[str]) -> None:
    """A link to a file of the repository that is no page stays as its words; one to nothing fails."""
    del app

    def words(found: re.Match[str]) -> str:
        target = (HERE / name).parent.joinpath(found[2]).resolve()
        return found[1] if target.exists() and HERE not in target.parents else found[0]

    source[0] = re.sub(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+[^)\s#]+)[^)\s]*\)", words, source[0])


def link_schemas(app: Sphinx, page: document) -> None:
    """Links to schemas lead to where they are published under their own names."""
    up = "../" * app.env.docname.count("/")
    for link in page.findall(addnodes.download_reference):
        target = str(link["reftarget"])
        if "schemas/" in target:
            link["refuri"] = f"{up}schemas/{Path(target).name}"
            del link["filename"]
    app.env.dlfiles.purge_doc(app.env.docname)


def publish_schemas(app: Sphinx, fault: Exception | None) -> None:
    """The schemas lie beside the pages, whole."""
    if fault is None:
        shutil.copytree(HERE / "schemas", app.outdir / "schemas", dirs_exist_ok=True)


def say_language(app: Sphinx, name: str, template: str, context: dict[str, Any], page: object) -> None:
    """A page in Chinese says so to screen readers and browsers."""
    del app, template, page
    if name.startswith("zh/"):
        context["language"] = "zh-CN"


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    from sphinx.search import languages

    languages["mixed"] = Mixed
    app.connect("source-read", unlink_repository)
    app.connect("doctree-read", link_schemas, priority=900)
    app.connect("build-finished", publish_schemas)
    app.connect("html-page-context", say_language)
