"""Which method of the reader is called at which element, and which elements are passed over."""

from __future__ import annotations

from chatproc.attachments.docx_names import (
    CHART,
    COMPATIBILITY,
    DIAGRAM,
    DRAWING,
    MATH,
    OFFICE,
    PICTURE,
    PLACED,
    SHAPE,
    WORD,
    in_each,
)

UNDERSTOOD = frozenset(
    {
        *("wps", "wpg", "wpc", "wpi", "wp", "wp14", "wne", "w10", "w14", "w15", "w16", "w16se", "w16cid"),
        *("w16cex", "w16du", "w16sdtdh", "a14", "a16", "c14", "c16", "c16r2", "v", "o", "m", "pic", "am3d"),
        *("aink", "cx", "cx1", "cx2", "cx3", "cx4", "cx5", "cx6", "cx7", "cx8"),
    }
)
"""Prefixes of what a present-day Word shows: of alternatives that require others it shows the fallback."""

DELETED = frozenset(uri + name for uri in WORD for name in ("delText", "t", "drawing", "pict", "object"))
PLACEHOLDER = frozenset(uri + "showingPlcHdr" for uri in WORD)

STARTS: dict[str, str] = {
    **in_each(WORD, {
        "document": "document",
        "p": "paragraph", "pPr": "properties", "pStyle": "style", "numId": "list_id", "ilvl": "list_level",
        "r": "run_begin", "rStyle": "run_style", "vanish": "vanish", "specVanish": "vanish",
        "color": "color", "sz": "size",
        "shd": "shade", "highlight": "highlight", "rPr": "mark_properties", "tblStyle": "table_style",
        "t": "text", "tab": "tab", "ptab": "tab", "br": "line_break", "cr": "line_break",
        "noBreakHyphen": "hyphen", "sym": "symbol",
        "ins": "inserted", "moveTo": "moved_here", "del": "deleted", "moveFrom": "moved_away",
        "sdt": "control", "sdtPr": "control_properties", "sdtEndPr": "skip", "rt": "skip",
        "rPrChange": "skip", "pPrChange": "skip", "tblPrChange": "skip", "trPrChange": "skip",
        "tcPrChange": "skip", "sectPrChange": "skip", "tblPrExChange": "skip", "tblGridChange": "skip",
        "tbl": "table", "tblPr": "table_properties", "tr": "row", "trPr": "row_properties",
        "tc": "cell", "gridSpan": "span",
        "cellDel": "deleted_cell", "hidden": "hidden_row",
        "txbxContent": "box", "object": "object", "altChunk": "included",
        "hyperlink": "link", "fldSimple": "simple_field", "fldChar": "field_mark", "instrText": "instruction",
        "checkBox": "check_box", "default": "checked", "checked": "checked",
        "footnoteReference": "footnote_reference", "endnoteReference": "endnote_reference",
        "commentReference": "comment_reference",
        "footnote": "footnote", "endnote": "endnote", "comment": "comment",
    }),
    **in_each(COMPATIBILITY, {
        "AlternateContent": "alternatives", "Choice": "choice", "Fallback": "fallback",
    }),
    **in_each(DRAWING, {"t": "drawing_text"}),
    **in_each(PLACED, {"docPr": "placed"}),
    **in_each(PICTURE, {"pic": "picture"}),
    **in_each(CHART, {"chart": "chart"}),
    **in_each(DIAGRAM, {"relIds": "diagram"}),
    **in_each(SHAPE, {"shape": "shape", "textpath": "word_art", "imagedata": "picture"}),
    **in_each(OFFICE, {"OLEObject": "embedded"}),
    **in_each(MATH, {
        "t": "text", "r": "run_begin", "ctrlPr": "skip",
        "num": "math_part", "deg": "math_part", "den": "denominator",
        "sup": "superscript", "sub": "subscript",
        "rad": "root", "d": "bracket", "begChr": "bracket_begins", "endChr": "bracket_ends", "e": "math_base",
        "nary": "operator", "chr": "operator_sign",
    }),
}  # fmt: skip
"""What is called when an element begins, by its full name."""

ENDS: dict[str, str] = {
    **in_each(WORD, {
        "p": "paragraph_end", "pPr": "properties_end", "trPr": "properties_end", "tblPr": "properties_end",
        "rPr": "mark_properties_end", "t": "text_end", "instrText": "text_end",
        "ins": "leave", "moveTo": "leave", "sdt": "leave",
        "tbl": "table_end", "tr": "row_end", "tc": "cell_end",
        "txbxContent": "box_end", "object": "object_end",
        "hyperlink": "link_end", "fldSimple": "link_end",
        "footnote": "note_end", "endnote": "note_end", "comment": "note_end",
    }),
    **in_each(COMPATIBILITY, {"AlternateContent": "alternatives_end"}),
    **in_each(DRAWING, {"t": "drawing_text_end", "p": "drawing_paragraph_end"}),
    **in_each(MATH, {
        "t": "text_end", "num": "math_part_end", "deg": "math_part_end", "den": "math_part_end",
        "sup": "math_part_end", "sub": "math_part_end", "rad": "math_part_end", "d": "bracket_end",
        "naryPr": "operator_end", "mr": "matrix_row_end",
    }),
}  # fmt: skip
"""What is called when an element ends, by its full name."""
