"""Parts that a document shows as pictures or pages of their own, as text: charts, diagrams, included pages.

Pure. It must never take in more of a page than `_LONGEST_PAGE`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chatproc.attachments.charset import NotTextError, decode, decode_html
from chatproc.attachments.docx_names import CHART, DIAGRAM, DRAWING, in_each
from chatproc.attachments.ooxml import Pass
from chatproc.attachments.text import visible_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from chatproc.attachments.ooxml import Attributes

_LONGEST_PAGE = 200_000
"""Characters of an included page."""


def chart_text(content: bytes) -> str:
    """A chart: its titles, then each series with its points."""
    said: list[str] = []
    pieces: list[str] = []
    columns: dict[str, list[str]] = {}
    column = ""

    def into(_attributes: Attributes) -> None:
        pieces.clear()
        one_pass.begin_text(pieces.append)

    def title_end() -> None:
        one_pass.end_text()
        said.append("".join(pieces))

    def value_end() -> None:
        one_pass.end_text()
        columns.setdefault(column, []).append("".join(pieces))

    def begin_series(_attributes: Attributes) -> None:
        nonlocal column
        columns.clear()
        column = ""

    def begin_column(name: str) -> Callable[[Attributes], None]:
        def begin(_attributes: Attributes) -> None:
            nonlocal column
            column = name

        return begin

    def series_end() -> None:
        names, values = columns.get("category", []), columns.get("value", [])
        names += [""] * (len(values) - len(names))
        points = [f"{name} = {value}" if name else value for name, value in zip(names, values, strict=False)]
        said.append(
            ": ".join(part for part in (" ".join(columns.get("title", [])), ", ".join(points)) if part)
        )
        columns.clear()

    starts: Mapping[str, Callable[[Attributes], None]] = {
        **in_each(CHART, {
            "v": into, "ser": begin_series, "tx": begin_column("title"), "cat": begin_column("category"),
            "xVal": begin_column("category"), "val": begin_column("value"), "yVal": begin_column("value"),
            "bubbleSize": begin_column("size"), "errBars": begin_column("error"),
        }),
        **in_each(DRAWING, {"t": into}),
    }  # fmt: skip
    ends = {
        **in_each(CHART, {"v": value_end, "ser": series_end}),
        **in_each(DRAWING, {"t": title_end}),
    }
    one_pass = Pass(starts, ends)
    one_pass.run(content)
    return "; ".join(part for part in said if part.strip())


def diagram_text(content: bytes) -> str:
    """The texts of a diagram's points."""
    said: list[str] = []
    pieces: list[str] = []

    def into(_attributes: Attributes) -> None:
        one_pass.begin_text(pieces.append)

    def text_end() -> None:
        one_pass.end_text()

    def point_end() -> None:
        text = "".join(pieces).strip()
        pieces.clear()
        if text:
            said.append(text)

    one_pass = Pass(
        in_each(DRAWING, {"t": into}),
        {**in_each(DRAWING, {"t": text_end}), **in_each(DIAGRAM, {"pt": point_end})},
    )
    one_pass.run(content)
    return "; ".join(said)


def page_text(content: bytes, *, is_html: bool) -> str | None:
    """The text that a person sees of an included page; `None` when it is none."""
    try:
        source, _ = decode_html(content) if is_html else decode(content)
        text = visible_text(source[:_LONGEST_PAGE])[0] if is_html else source
    except NotTextError:
        return None
    except AssertionError:  # what the HTML parser of the standard library does at some broken declarations
        return None
    return "\n".join(line.strip() for line in text.split("\n") if line.strip())
