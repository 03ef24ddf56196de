"""One part of a Word document to a flow of paragraphs and tables, everything marked with what it is.

Driven by a pass over the part's XML: a method for each element that begins or ends. It must never show as
plain text what the document's reader does not see, nor follow a relationship.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.parsers import expat

from chatproc.attachments.docx_elements import DELETED, ENDS, PLACEHOLDER, STARTS, UNDERSTOOD
from chatproc.attachments.docx_lists import ListPlace
from chatproc.attachments.docx_names import (
    MATH,
    RELATION,
    is_on,
    live_field,
    number,
    word,
)
from chatproc.attachments.docx_parts import chart_text, diagram_text, page_text
from chatproc.attachments.docx_pieces import (
    Alternatives,
    Body,
    Bracket,
    Field,
    Frame,
    Paragraph,
    Table,
    end_mark,
)
from chatproc.attachments.docx_sight import NOTHING_SAID, Look, ground, highlight, ink, is_tiny
from chatproc.attachments.docx_signs import sign_of
from chatproc.attachments.ooxml import Pass
from chatproc.attachments.units import UnreadableError, clean

if TYPE_CHECKING:
    from collections.abc import Callable

    from chatproc.attachments.docx import Reading
    from chatproc.attachments.ooxml import Attributes, Relation

MAX_NESTED = 100
"""Tables and text boxes within each other."""

_MOST_COLUMNS = 63
"""What a table of Word may have; a cell that claims to span more spans so many."""

_LONGEST_NAME = 80
_LONGEST_URL = 300
_NEAR = 16
"""Pieces of text before the end of a link that are searched for its address."""

_HYPERLINK = re.compile(r'^\s*HYPERLINK\s+"?((?:https?|mailto):[^"\s]+)', re.IGNORECASE)
_LIVE = re.compile(r"\s*(DATE|TIME|FILENAME)\b")


class Reader:
    """One part, told into a flow of paragraphs and tables.

    Args:
        reading: The document it belongs to.
        part: Its name.
        flow: Where its paragraphs go.
    """

    def __init__(self, reading: Reading, part: str, flow: list[str]) -> None:
        """Read nothing yet."""
        self.begun = False
        self.is_document = False
        self._reading = reading
        self._is_body = isinstance(flow, Body)
        self._relations = reading.relations if self._is_body else reading.relations_of(part)
        self._flow = flow
        self._paragraph: Paragraph | None = None
        self._around: list[Paragraph | None] = []
        self._table: Table | None = None
        self._frames: list[Frame] = []
        self._fields: list[Field] = []
        self._contexts: list[str] = []
        self._context = ""
        """What the text around is: inserted, moved here, placeholder."""
        self._base = ""
        """The mark of a run that says nothing of itself."""
        self._mark = ""
        self._run = ""
        self._look = NOTHING_SAID
        self._in_properties = ""
        self._in_object = False
        self._alternatives: list[Alternatives] = []
        self._links: list[tuple[str, Paragraph | None, int]] = []
        self._note = "", "", ""
        self._brackets: list[Bracket] = []
        self._operator = ""
        self._pass = Pass(
            {name: getattr(self, method) for name, method in STARTS.items()},
            {name: getattr(self, method) for name, method in ENDS.items()},
            self.external_entity,
        )

    def run(self, content: bytes) -> None:
        """Read the part.

        Raises:
            expat.ExpatError: Not well-formed.
        """
        self.begun = True
        self._pass.run(content)

    def unwind(self) -> None:
        """End what a damaged part left open, so that nothing of it is lost."""
        while self._frames:
            if self._table is not None:
                self.cell_end()
                self.row_end()
                self.table_end()
            else:
                self.box_end()
        self._close()

    # Text.

    def text(self, _attributes: Attributes) -> None:
        """Text of a run."""
        paragraph = self._paragraph
        if paragraph is None:
            paragraph = self._paragraph = Paragraph()
        if self._mark != paragraph.open:
            self._switch(paragraph)
        self._pass.begin_text(paragraph.out.append)

    def text_end(self) -> None:
        """End of a run's text."""
        self._pass.end_text()

    def drawing_text(self, attributes: Attributes) -> None:
        """Text of a shape that is no text box."""
        self._mark = "drawing"
        self.text(attributes)

    def drawing_text_end(self) -> None:
        """End of a shape's text."""
        self._pass.end_text()
        self._mark = self._base

    def drawing_paragraph_end(self) -> None:
        """Paragraphs of a shape stand in one line."""
        if self._paragraph is not None and self._paragraph.open == "drawing":
            self._paragraph.out.append(" ")

    def tab(self, _attributes: Attributes) -> None:
        """A tab, but not a tab stop among properties."""
        if self._paragraph is not None and not self._in_properties:
            self._paragraph.out.append("\t")

    def line_break(self, _attributes: Attributes) -> None:
        """A line, column or page break."""
        if self._paragraph is not None:
            self._paragraph.out.append("\n")

    def hyphen(self, _attributes: Attributes) -> None:
        """A hyphen that does not break."""
        if self._paragraph is not None:
            self._paragraph.out.append("-")

    def symbol(self, attributes: Attributes) -> None:
        """A sign of a font of signs."""
        try:
            code = int(word(attributes, "char") or "", 16)
        except ValueError:
            return
        font = (word(attributes, "font") or "").lower()
        self._show(sign_of(font, code))

    def external_entity(self) -> None:
        """A reference to something outside of the part."""
        self._say("[external entity, not read]")

    def _say(self, mark: str) -> None:
        """A mark of our own, outside of marks of runs."""
        self._mark = self._base
        self._show(mark)

    def _show(self, text: str) -> None:
        paragraph = self._paragraph
        if paragraph is None:
            paragraph = self._paragraph = Paragraph()
        if self._mark != paragraph.open:
            self._switch(paragraph)
        paragraph.out.append(text)

    def _switch(self, paragraph: Paragraph) -> None:
        """Close the open mark and open the present one; neighbouring runs of one kind share a mark."""
        if paragraph.open:
            end_mark(paragraph)
        if self._mark:
            paragraph.out.append(f"[{self._mark}: ")
        paragraph.open = self._mark

    # Paragraphs.

    def paragraph(self, _attributes: Attributes) -> None:
        """A paragraph begins; one within another stands after what the outer one said so far."""
        around = self._paragraph
        if around is not None:
            self._break(around)
        self._around.append(around)
        self._paragraph = Paragraph()
        self._base = self._mark = self._context

    def paragraph_end(self) -> None:
        """A paragraph ends, and fields that never came to a result with it: they were none."""
        self._close()
        self._paragraph = self._around.pop() if self._around else None
        if self._context or self._paragraph is not None:
            self._rebase()

    def _close(self) -> None:
        paragraph = self._paragraph
        if paragraph is None:
            return
        self._break(paragraph)
        self._paragraph = None
        fields = self._fields
        while fields and fields[-1].paragraph is paragraph and not fields[-1].result:
            fields.pop()

    def _break(self, paragraph: Paragraph) -> None:
        """Give what a paragraph says so far to the flow."""
        out = paragraph.out
        if paragraph.open:
            end_mark(paragraph)
        text = "".join(out).strip()
        out.clear()
        if paragraph.style is not None or paragraph.list_id is not None:
            text = self._labelled(paragraph, text)
        if text:
            self._flow.append(text)

    def _labelled(self, paragraph: Paragraph, text: str) -> str:
        """The text after its list label; empty paragraphs count too, deleted ones do not."""
        if paragraph.deleted and text in {"", "[deleted]", "[moved away]"}:
            return text
        place = None
        if paragraph.list_id is not None:
            place = ListPlace(paragraph.list_id, paragraph.level)
        elif paragraph.style is not None:
            place = self._reading.lists.place_of_style(paragraph.style)
        paragraph.style = paragraph.list_id = None
        label = self._reading.lists.label(place) if place is not None else ""
        if not label or not text:
            return text
        return f"{'  ' * place.level if place is not None and self._table is None else ''}{label} {text}"

    def properties(self, _attributes: Attributes) -> None:
        """Properties of a paragraph begin."""
        self._in_properties = "paragraph"

    def table_style(self, attributes: Attributes) -> None:
        """The style of a table."""
        if self._table is not None:
            self._table.look = self._reading.styles.look(word(attributes, "val") or "", alone=True)

    def row_properties(self, _attributes: Attributes) -> None:
        """Properties of a row begin."""
        self._in_properties = "row"

    def table_properties(self, _attributes: Attributes) -> None:
        """Properties of a table begin."""
        self._in_properties = "table"

    def properties_end(self) -> None:
        """Properties end."""
        self._in_properties = ""

    def style(self, attributes: Attributes) -> None:
        """The paragraph's style."""
        paragraph, style = self._paragraph, word(attributes, "val")
        if paragraph is not None and style:
            paragraph.style = style
            paragraph.look = self._reading.styles.look(style)
            if self._reading.styles.hides(style):
                paragraph.hidden = True
                self._rebase()

    def list_id(self, attributes: Attributes) -> None:
        """The paragraph's list."""
        if self._paragraph is not None:
            self._paragraph.list_id = word(attributes, "val") or ""

    def list_level(self, attributes: Attributes) -> None:
        """The paragraph's level in its list."""
        if self._paragraph is not None:
            self._paragraph.level = number(word(attributes, "val"))

    # Runs.

    def run_begin(self, _attributes: Attributes) -> None:
        """A run begins, with the mark of what is around it."""
        self._mark = self._base
        self._run = ""
        self._look = self._around_run()
        if self._look is not NOTHING_SAID:
            self._judge()

    def _around_run(self) -> Look:
        """What the paragraph and the table say of the look of a run."""
        paragraph, table = self._paragraph, self._table
        look = self._reading.styles.usual if paragraph is None or not paragraph.style else NOTHING_SAID
        if paragraph is not None and paragraph.look is not NOTHING_SAID:
            look = paragraph.look.over(look)
        if table is not None and (table.ground or table.look is not NOTHING_SAID):
            look = look.over(Look(ground=table.ground)).over(table.look)
        return look

    def run_style(self, attributes: Attributes) -> None:
        """The style of a run."""
        if self._in_properties:
            return
        style = word(attributes, "val") or ""
        if self._reading.styles.hides(style):
            self._turn("hidden")
        self._shows(self._reading.styles.look(style, alone=True))

    def vanish(self, attributes: Attributes) -> None:
        """Hidden text, or text that is shown although its style hides it."""
        if not self._in_properties:
            self._turn("hidden" if is_on(attributes) else "")
            self._judge()

    def color(self, attributes: Attributes) -> None:
        """The colour of a run."""
        if not self._in_properties:
            self._shows(Look(ink=ink(attributes)))

    def size(self, attributes: Attributes) -> None:
        """The size of a run."""
        if not self._in_properties:
            self._shows(Look(tiny=is_tiny(attributes)))

    def shade(self, attributes: Attributes) -> None:
        """The ground behind a run, a paragraph, a cell or a table."""
        behind = ground(attributes)
        if self._in_properties == "paragraph" and self._paragraph is not None:
            self._paragraph.look = self._paragraph.look._replace(ground=behind)
        elif self._in_properties == "table" and self._table is not None:
            self._table.look = self._table.look._replace(ground=behind)
        elif self._in_properties:
            return
        elif self._paragraph is not None:
            self._shows(Look(ground=behind))
        elif self._table is not None:
            self._table.ground = behind

    def highlight(self, attributes: Attributes) -> None:
        """A coloured ground behind a run."""
        if not self._in_properties:
            self._shows(Look(ground=highlight(attributes)))

    def _shows(self, look: Look) -> None:
        """The run says of itself how it is shown."""
        if look is not NOTHING_SAID:
            self._look = look.over(self._look)
            self._judge()

    def _judge(self) -> None:
        """Mark what nobody sees."""
        is_lost = self._look.is_lost()
        if self._run == "" and is_lost:
            self._turn("not visible")
        elif self._run == "not visible" and not is_lost:
            self._run = ""
            self._mark = self._base

    def mark_properties(self, _attributes: Attributes) -> None:
        """What is said within the paragraph's properties of its end mark, which nobody reads."""
        if self._in_properties == "paragraph":
            self._in_properties = "mark"

    def mark_properties_end(self) -> None:
        """That ends."""
        if self._in_properties == "mark":
            self._in_properties = "paragraph"

    def _turn(self, run: str) -> None:
        """The run says of itself what it is."""
        self._run = run
        self._mark = f"{self._context}, {run}" if self._context and run else run or self._context

    def _rebase(self) -> None:
        """What is around changed."""
        hidden = self._paragraph is not None and self._paragraph.hidden
        self._base = f"{self._context}, hidden" if self._context and hidden else self._context
        if hidden and not self._context:
            self._base = "hidden"
        self._mark = self._base

    # Tracked changes and content controls.

    def inserted(self, _attributes: Attributes) -> None:
        """Inserted content begins."""
        self._enter("inserted")

    def moved_here(self, _attributes: Attributes) -> None:
        """Moved content begins, at its new place."""
        self._enter("moved here")

    def control(self, _attributes: Attributes) -> None:
        """A content control begins."""
        self._enter(self._context)

    def control_properties(self, _attributes: Attributes) -> None:
        """Properties of a content control: whether it only shows what is to be filled in."""
        self._pass.skip(PLACEHOLDER, self._is_placeholder)

    def _is_placeholder(self, is_one: bool) -> None:  # noqa: FBT001 - called by the pass
        if is_one:
            self._context = "placeholder"
            self._rebase()

    def _enter(self, context: str) -> None:
        self._contexts.append(self._context)
        self._context = context
        self._rebase()

    def leave(self) -> None:
        """Inserted or moved content or a content control ends."""
        if self._contexts:
            self._context = self._contexts.pop()
            self._rebase()

    def deleted(self, _attributes: Attributes) -> None:
        """Deleted content, or the mark that a paragraph or row is deleted."""
        self._leave_out("[deleted]")

    def moved_away(self, _attributes: Attributes) -> None:
        """Moved content, at its old place."""
        self._leave_out("[moved away]")

    def _leave_out(self, mark: str) -> None:
        if self._in_properties == "row" and self._table is not None:
            self._table.dropped_row = True
        elif self._in_properties in {"paragraph", "mark"} and self._paragraph is not None:
            self._paragraph.deleted = True

        def then(had_text: bool) -> None:  # noqa: FBT001 - called by the pass
            if had_text and not (self._paragraph is not None and self._paragraph.out[-1:] == [mark]):
                self._say(mark)

        self._pass.skip(DELETED, then)

    def hidden_row(self, attributes: Attributes) -> None:
        """The row is hidden."""
        if self._in_properties == "row" and self._table is not None:
            self._table.hidden_row = is_on(attributes)

    def deleted_cell(self, _attributes: Attributes) -> None:
        """The cell is deleted."""
        if self._table is not None:
            self._table.dropped_cell = True

    def skip(self, _attributes: Attributes) -> None:
        """Nothing of this element is shown."""
        self._pass.skip()

    # Tables.

    def table(self, _attributes: Attributes) -> None:
        """A table begins."""
        if self._paragraph is not None:
            self._break(self._paragraph)
        self._enter_frame()
        self._table = Table()

    def row(self, _attributes: Attributes) -> None:
        """A row begins."""
        table = self._table
        if table is not None:
            table.row = []
            table.cells = 0
            table.dropped_row = table.hidden_row = False

    def cell(self, _attributes: Attributes) -> None:
        """A cell begins."""
        table = self._table
        if table is not None:
            self._flow = []
            self._paragraph = None
            table.span = 1
            table.dropped_cell = False
            table.ground = ""

    def span(self, attributes: Attributes) -> None:
        """How many columns the cell covers."""
        if self._table is not None:
            self._table.span = min(max(number(word(attributes, "val"), 1), 1), _MOST_COLUMNS)

    def cell_end(self) -> None:
        """A cell ends; the columns that it covers beyond its own stay empty."""
        table = self._table
        if table is None:
            return
        self._close()
        flow = self._flow
        text = flow[0] if len(flow) == 1 else "\n".join(flow)
        table.row.append("[deleted]" if table.dropped_cell and text else text)
        table.cells += 1
        if table.span > 1:
            table.row.extend([""] * (table.span - 1))
        self._flow = []

    def row_end(self) -> None:
        """A row ends: its cells in one line, or the lines of its only cell."""
        table = self._table
        if table is None:
            return
        row, table.row = table.row, []
        while row and not row[-1]:
            row.pop()
        if table.dropped_row:
            line = "[deleted row]" if any(row) else ""
        elif table.cells == 1 and row:
            line = row[0]
        else:
            line = " | ".join(row)
            if "\n" in line:
                line = " | ".join([cell.replace("\n", " / ") for cell in row])
        if line:
            table.rows.append(f"[hidden: {line}]" if table.hidden_row else line)

    def table_end(self) -> None:
        """A table ends: it is one block, or stands in the cell around it."""
        table = self._table
        if table is None or not self._frames:
            return
        text = "\n".join(table.rows)
        self._flow, self._paragraph, self._table = self._frames.pop()
        if self._paragraph is not None:
            self._rebase()
        if text:
            self._flow.append(f"[table: {text}]" if self._table is not None else text)

    # Text boxes and drawings.

    def box(self, _attributes: Attributes) -> None:
        """A text box begins."""
        self._enter_frame()

    def _enter_frame(self) -> None:
        if len(self._frames) >= MAX_NESTED:
            raise UnreadableError("too_large", f"its tables stand more than {MAX_NESTED} deep in each other")
        self._frames.append(Frame(self._flow, self._paragraph, self._table))
        self._flow, self._paragraph, self._table = [], None, None

    def box_end(self) -> None:
        """A text box ends: it stands in the paragraph that it is anchored in."""
        if not self._frames:
            return
        self._close()
        text = "\n".join(self._flow)
        self._flow, self._paragraph, self._table = self._frames.pop()
        self._rebase()
        if text:
            self._say(f"[text box: {text}]")

    def alternatives(self, _attributes: Attributes) -> None:
        """The same content in several renderings begins."""
        paragraph = self._paragraph
        pieces = len(paragraph.out) if paragraph is not None else 0
        self._alternatives.append(Alternatives(self._flow, self._written(), paragraph, pieces))

    def alternatives_end(self) -> None:
        """The renderings end."""
        if self._alternatives:
            self._alternatives.pop()

    def choice(self, attributes: Attributes) -> None:
        """A rendering for programs that understand what it requires."""
        if self._has_rendering() or not set(attributes.get("Requires", "").split()) <= UNDERSTOOD:
            self._pass.skip()

    def fallback(self, _attributes: Attributes) -> None:
        """The rendering for all others."""
        if self._has_rendering():
            self._pass.skip()

    def _has_rendering(self) -> bool:
        """Whether one of the renderings has said something already."""
        if not self._alternatives:
            return False
        flow, written, paragraph, pieces = self._alternatives[-1]
        now = self._paragraph
        if now is not paragraph:
            return True
        grown = now is not None and len(now.out) > pieces
        return grown or (self._flow is flow and self._written() > written)

    def _written(self) -> int:
        return len(self._reading.blocks) if isinstance(self._flow, Body) else len(self._flow)

    def placed(self, attributes: Attributes) -> None:
        """A drawing and its alternative text."""
        self._alternative_text(attributes.get("descr") or attributes.get("title"))

    def shape(self, attributes: Attributes) -> None:
        """A shape in the older language, and its alternative text."""
        self._alternative_text(attributes.get("alt"))

    def _alternative_text(self, text: str | None) -> None:
        if text and text.strip():
            self._say(f"[alt text: {text.strip()}]")

    def picture(self, _attributes: Attributes) -> None:
        """A picture; the preview of an embedded object is none."""
        if not self._in_object:
            self._say("[picture]")

    def word_art(self, attributes: Attributes) -> None:
        """Text that is drawn along a path: word art, a watermark."""
        text = attributes.get("string")
        if text and text.strip():
            self._say(f"[word art: {text.strip()}]")

    def object(self, _attributes: Attributes) -> None:
        """An embedded object begins."""
        self._in_object = True

    def object_end(self) -> None:
        """An embedded object ends."""
        self._in_object = False

    def embedded(self, attributes: Attributes) -> None:
        """What is embedded, not opened."""
        self._reading.objects += 1
        program = clean(attributes.get("ProgID", "")[:_LONGEST_NAME])
        verb = "linked" if attributes.get("Type") == "Link" else "embedded"
        self._say(f"[{verb} object {program}, not opened]" if program else f"[{verb} object, not opened]")

    def chart(self, attributes: Attributes) -> None:
        """A chart: its title and numbers."""
        self._inline_part("chart", attributes, "id", chart_text)

    def diagram(self, attributes: Attributes) -> None:
        """A diagram: the texts of its points."""
        self._inline_part("diagram", attributes, "dm", diagram_text)

    def _inline_part(self, kind: str, attributes: Attributes, key: str, read: Callable[[bytes], str]) -> None:
        relation = self._relation(attributes, key)
        content = self._reading.once(relation.target) if relation and not relation.external else None
        text = ""
        if content:
            try:
                text = read(content)
            except expat.ExpatError:
                self._reading.damage.append(kind)
        self._say(f"[{kind}: {text}]" if text else f"[{kind}]")

    def included(self, attributes: Attributes) -> None:
        """A part in another format that is shown as a part of the text: HTML or plain text is, others not."""
        relation = self._relation(attributes, "id")
        if relation is None or relation.external:
            return
        name = clean(relation.target.rpartition(".")[2][:_LONGEST_NAME].lower())
        text = None
        if name in {"html", "htm", "xhtml", "txt"}:
            content = self._reading.once(relation.target)
            text = page_text(content, is_html=name != "txt") if content else None
        if self._paragraph is not None:
            self._break(self._paragraph)
        if text:
            self._flow.append(f"[included {name}: {text}]")
        elif text is None:
            self._reading.objects += 1
            self._flow.append(f"[included {name}, not opened]")

    # Links, notes, fields.

    def link(self, attributes: Attributes) -> None:
        """A link begins."""
        relation = self._relation(attributes, "id")
        url = relation.target if relation is not None and relation.kind == "hyperlink" else ""
        paragraph = self._paragraph
        self._links.append((url, paragraph, len(paragraph.out) if paragraph is not None else 0))

    def link_end(self) -> None:
        """A link ends: where it leads, unless its text says so."""
        if not self._links:
            return
        url, paragraph, position = self._links.pop()
        if url and paragraph is not None and paragraph is self._paragraph:
            self._tell_url(url, paragraph, position)

    def _tell_url(self, url: str, paragraph: Paragraph, position: int) -> None:
        """Each address once in a document, after the text that leads there."""
        text = "".join(paragraph.out[max(position, len(paragraph.out) - _NEAR) :])
        shown = clean(url.removeprefix("mailto:")[:_LONGEST_URL])
        if text and shown not in self._reading.urls and shown.rstrip("/") not in text:
            self._reading.urls.add(shown)
            self._say(f" ({shown})")

    def footnote_reference(self, attributes: Attributes) -> None:
        """A reference to a footnote."""
        self._refer("footnote", attributes)

    def endnote_reference(self, attributes: Attributes) -> None:
        """A reference to an endnote."""
        self._refer("endnote", attributes)

    def comment_reference(self, attributes: Attributes) -> None:
        """The place of a comment."""
        self._refer("comment", attributes)

    def _refer(self, kind: str, attributes: Attributes) -> None:
        if self._is_body:
            self._say(self._reading.notes.refer(kind, word(attributes, "id") or ""))
        else:
            self._say(f"[{kind}]")

    def footnote(self, attributes: Attributes) -> None:
        """A footnote begins."""
        self._begin_note("footnote", attributes)

    def endnote(self, attributes: Attributes) -> None:
        """An endnote begins."""
        self._begin_note("endnote", attributes)

    def comment(self, attributes: Attributes) -> None:
        """A comment begins."""
        self._begin_note("comment", attributes)

    def _begin_note(self, kind: str, attributes: Attributes) -> None:
        if word(attributes, "type") not in {None, "normal"}:
            self._pass.skip()
            return
        author = clean((word(attributes, "author") or "")[:_LONGEST_NAME]).replace("\n", " ").strip()
        self._note = kind, word(attributes, "id") or "", author
        self._flow = []

    def note_end(self) -> None:
        """A note ends."""
        self._close()
        kind, note_id, author = self._note
        text = "\n".join(self._flow)
        self._flow = []
        if text and kind:
            self._reading.notes.keep(kind, note_id, author, text)

    def simple_field(self, attributes: Attributes) -> None:
        """A field whose instruction is an attribute: its content is the result."""
        found = _HYPERLINK.match(word(attributes, "instr") or "")
        paragraph = self._paragraph
        position = len(paragraph.out) if paragraph is not None else 0
        self._links.append((found.group(1) if found else "", paragraph, position))

    def field_mark(self, attributes: Attributes) -> None:
        """A field begins, comes to its result, or ends."""
        kind = word(attributes, "fldCharType")
        if kind == "begin":
            paragraph = self._paragraph
            if paragraph is None:
                paragraph = self._paragraph = Paragraph()
            is_locked = (word(attributes, "fldLock") or "0") not in {"0", "false", "off"}
            self._fields.append(Field(paragraph, len(paragraph.out), paragraph.open, is_locked))
        elif self._fields and kind in {"separate", "end"}:
            current = self._fields[-1]
            if not current.result:
                self._end_instruction(current)
            if kind == "end":
                self._fields.pop()
                self._end_field(current)

    def _end_instruction(self, current: Field) -> None:
        """Take back what stood in the instruction: results of fields within it."""
        current.result = True
        paragraph = self._paragraph
        if paragraph is current.paragraph and len(paragraph.out) > current.position:
            del paragraph.out[current.position :]
            paragraph.open = current.open
        instruction = "".join(current.instruction)
        found = _HYPERLINK.match(instruction)
        current.url = found.group(1) if found else ""
        is_live = self._reading.is_converted and not current.is_locked
        live = _LIVE.match(instruction) if is_live else None
        current.live = live.group(1) if live else ""

    def _end_field(self, current: Field) -> None:
        if current.live and current.paragraph is self._paragraph:
            del current.paragraph.out[current.position :]
            current.paragraph.open = current.open
            self._say(live_field(current.live))
        if current.value:
            self._say(current.value)
        if current.url and current.paragraph is self._paragraph:
            self._tell_url(current.url, current.paragraph, current.position)

    def instruction(self, _attributes: Attributes) -> None:
        """Text of a field's instruction."""
        if self._fields:
            self._pass.begin_text(self._fields[-1].instruction.append)

    def check_box(self, _attributes: Attributes) -> None:
        """A check box of a form, not ticked until something says so."""
        if self._fields:
            self._fields[-1].value = "☐"

    def checked(self, attributes: Attributes) -> None:
        """Whether the check box is ticked, as it was filled in or, before, by default."""
        if self._fields and self._fields[-1].value:
            self._fields[-1].value = "☒" if is_on(attributes) else "☐"

    # Equations.

    def math_part(self, _attributes: Attributes) -> None:
        """A numerator, or the degree of a root."""
        self._show("(")

    def denominator(self, _attributes: Attributes) -> None:
        """A denominator."""
        self._show("/(")

    def superscript(self, _attributes: Attributes) -> None:
        """What stands above."""
        self._show("^(")

    def subscript(self, _attributes: Attributes) -> None:
        """What stands below."""
        self._show("_(")

    def root(self, _attributes: Attributes) -> None:
        """A root."""
        self._show("√(")

    def math_part_end(self) -> None:
        """A part of an equation ends; nothing is left of an empty one."""
        out = self._paragraph.out if self._paragraph is not None else []
        if out and out[-1] in {"(", "/(", "^(", "_("}:
            out.pop()
        else:
            self._show(")")

    def bracket(self, _attributes: Attributes) -> None:
        """A bracketed part begins."""
        self._brackets.append(Bracket())

    def bracket_begins(self, attributes: Attributes) -> None:
        """The opening bracket's sign."""
        if self._brackets:
            self._brackets[-1].begin = _sign(attributes)

    def bracket_ends(self, attributes: Attributes) -> None:
        """The closing bracket's sign."""
        if self._brackets:
            self._brackets[-1].end = _sign(attributes)

    def math_base(self, _attributes: Attributes) -> None:
        """What a bracket holds, or what a sign stands at."""
        if self._brackets and not self._brackets[-1].begun:
            self._brackets[-1].begun = True
            self._show(self._brackets[-1].begin)

    def bracket_end(self) -> None:
        """A bracketed part ends."""
        if self._brackets:
            self._show(self._brackets.pop().end)

    def operator(self, _attributes: Attributes) -> None:
        """A sum or the like begins; an integral when nothing says what it is."""
        self._operator = "∫"

    def operator_sign(self, attributes: Attributes) -> None:
        """The sign of a sum or the like."""
        self._operator = _sign(attributes)

    def operator_end(self) -> None:
        """The sign is known."""
        self._show(self._operator)

    def matrix_row_end(self) -> None:
        """End of a matrix's row."""
        self._show("; ")

    # What is no text.

    def document(self, _attributes: Attributes) -> None:
        """The root of a Word document."""
        self.is_document = True

    def _relation(self, attributes: Attributes, key: str) -> Relation | None:
        for uri in RELATION:
            if uri + key in attributes:
                return self._relations.get(attributes[uri + key])
        return None


def _sign(attributes: Attributes) -> str:
    """The sign that an element of an equation names."""
    sign = next((attributes[uri + "val"] for uri in MATH if uri + "val" in attributes), "")
    return clean(sign[:1])
