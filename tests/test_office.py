"""Files that LibreOffice converts: what they say, that they reach nothing, and why some cannot be read."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import socket
import tempfile
import threading
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatproc.attachments import Archive, office
from chatproc.attachments.units import Limits, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SAMPLES = Path(__file__).parent / "attachments"

converting = pytest.mark.skipif(
    not any(map(shutil.which, ("soffice", "libreoffice"))), reason="LibreOffice is not installed"
)


def texts(content: bytes, kind: str) -> list[str]:
    with contextlib.closing(office.open_document(content, kind, Limits())) as document:
        return [document.unit(number).text for number in range(1, document.total + 1)]


def refusal(content: bytes, kind: str) -> str:
    with pytest.raises(UnreadableError) as refused:
        office.open_document(content, kind, Limits())
    return refused.value.code


@converting
@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("testWORD6.doc", "doc", "The quick brown fox jumps over the lazy dog"),
        ("innertable.doc", "doc", "[table:"),
        ("testRTF-ms932.rtf", "rtf", "こんにちは"),
        ("testFooter.odt", "odt", "Here is some text on page 2"),
        ("testWORKS2000.wps", "wps", "an example document made with Microsoft Works"),
        ("testPPT.ppt", "ppt", "Sample Powerpoint Slide"),
        ("testPPT_comment.pptx", "pptx", "[comment] I'm afraid"),
        ("testEXCEL_extra_metadata.xls", "xls", "[not visible]"),
    ],
)
def test_old_and_foreign_files_are_read_by_what_they_become(name: str, kind: str, words: str) -> None:
    document = office.open_document((SAMPLES / name).read_bytes(), kind, Limits())
    units = [document.unit(number) for number in range(1, document.total + 1)]
    letter = "p" if kind in {"ppt", "pptx", "odp"} else "b"
    assert [unit.id for unit in units] == [f"{letter}{number}" for number in range(1, len(units) + 1)]
    assert words in "\n".join(unit.text for unit in units)
    assert document.note.startswith("Converted from ") == (kind != "pptx")


@converting
def test_the_content_decides_how_a_file_is_converted_not_what_it_is_said_to_be() -> None:
    sheets = (SAMPLES / "testEXCEL_extra_metadata.xls").read_bytes()
    assert texts(sheets, "doc")[0].startswith(
        '[sheet 2 of 5 "hidden-sheet", a hidden sheet, not visible, row 1]'
    )


FIELDS = rb"{\rtf1\ansi seen {\v secret\v0} %s\par}" % b" ".join(
    rb"{\field{\*\fldinst %s}{\fldrslt 2020-07-03}}" % name
    for name in (b"DATE", b"TIME", b"FILENAME", b"AUTHOR")
)


@converting
def test_what_a_converter_fills_in_itself_is_not_given_as_the_author_s() -> None:
    (text,) = texts(FIELDS, "rtf")
    said = " ".join(
        f"[{name}: filled in whenever the file is opened]" for name in ("DATE", "TIME", "FILENAME")
    )
    assert text == f"seen [hidden: secret] {said} 2020-07-03"
    date = '<text:date text:date-value="2020-07-03" text:fixed="{}">2020-07-03</text:date>'
    body = f"<text:p>{date.format('true')} {date.format('false')}</text:p>"
    assert texts(open_document_format("text", f"<office:text>{body}</office:text>"), "odt") == [
        "7/3/20 [DATE: filled in whenever the file is opened]"
    ]


@converting
def test_the_date_of_a_converted_slide_is_not_given_as_the_author_s() -> None:
    page = (
        '<draw:page><draw:frame svg:width="9cm" svg:height="2cm" svg:x="1cm" svg:y="1cm"><draw:text-box>'
        '<text:p>due <text:date text:date-value="2020-07-03">2020-07-03</text:date></text:p>'
        "</draw:text-box></draw:frame></draw:page>"
    )
    content = open_document_format("presentation", f"<office:presentation>{page}</office:presentation>")
    assert "due [DATE: filled in whenever the file is opened]" in texts(content, "odp")[0]


SPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{urn}:1.0"'
    for name, urn in {
        "office": "office", "text": "text", "draw": "drawing", "svg": "svg-compatible", "table": "table",
        "of": "of", "script": "script",
    }.items()
)  # fmt: skip


EVENTS = (
    'xmlns:ooo="http://openoffice.org/2004/office" xmlns:dom="http://www.w3.org/2001/xml-events" '
    'xmlns:xlink="http://www.w3.org/1999/xlink"'
)


def open_document_format(
    kind: str, body: str, parts: dict[str, str] | None = None, scripts: str = ""
) -> bytes:
    """An ODF package with this body."""
    mime = f"application/vnd.oasis.opendocument.{kind}"
    head = f'<office:document-content {SPACES} {EVENTS} office:version="1.2">'
    entries = "".join(
        f'<manifest:file-entry manifest:full-path="{path}" manifest:media-type="{media}"/>'
        for path, media in (("/", mime), *((path, "text/xml") for path in ("content.xml", *(parts or {}))))
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as package:
        package.writestr("mimetype", mime)
        package.writestr(
            "META-INF/manifest.xml",
            '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
            f"{entries}</manifest:manifest>",
        )
        package.writestr(
            "content.xml", f"{head}{scripts}<office:body>{body}</office:body></office:document-content>"
        )
        for name, text in (parts or {}).items():
            package.writestr(name, text)
    return file.getvalue()


def frame(inside: str) -> str:
    return f'<draw:frame svg:width="5cm" svg:height="5cm" text:anchor-type="as-char">{inside}</draw:frame>'


def link(to: str) -> str:
    return f'xlink:href="{to}" xlink:type="simple" xlink:show="embed" xlink:actuate="onLoad"'


def asking_text(url: str, section: str = "section.odt") -> bytes:
    """A text that wants a picture, an object and a section from elsewhere."""
    picture = frame(f"<draw:image {link(url + '/picture.png')}/>")
    thing = frame(f"<draw:object {link(url + '/object.odt')}/>")
    source = f"<text:section-source {link(url + '/' + section)}/>"
    return open_document_format(
        "text",
        f"<office:text><text:p>before {picture} after</text:p><text:p>{thing}</text:p>"
        f'<text:section text:name="s">{source}<text:p>old</text:p></text:section></office:text>',
    )


def asking_slides(url: str) -> bytes:
    picture = f"<draw:image {link(url + '/slide.png')}/>"
    return open_document_format(
        "presentation",
        '<office:presentation><draw:page draw:name="one">'
        f'<draw:frame svg:width="5cm" svg:height="5cm" svg:x="1cm" svg:y="1cm">{picture}</draw:frame>'
        '<draw:frame svg:width="9cm" svg:height="2cm" svg:x="1cm" svg:y="8cm">'
        "<draw:text-box><text:p>slide 提交材料</text:p></draw:text-box></draw:frame>"
        "</draw:page></office:presentation>",
    )


def asking_sheet(url: str) -> bytes:
    source = link(f"{url}/table.ods")
    return open_document_format(
        "spreadsheet",
        f'<office:spreadsheet><table:table table:name="A"><table:table-source {source} '
        'table:table-name="x"/><table:table-row>'
        f'<table:table-cell table:formula="of:=WEBSERVICE(&quot;{url}/service&quot;)" '
        'office:value-type="string"><text:p>stored</text:p></table:table-cell>'
        '<table:table-cell office:value-type="string"><text:p>words</text:p></table:table-cell>'
        "</table:table-row></table:table></office:spreadsheet>",
    )


@contextlib.contextmanager
def listener() -> Iterator[tuple[str, list[str]]]:
    """An address on the loopback, and the first line of everything that is asked of it."""
    asked: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        asked.append(connection.recv(1000).decode("latin-1").partition("\r\n")[0])
                        connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", asked
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@converting
@pytest.mark.parametrize(
    ("kind", "make", "words"),
    [
        ("odt", asking_text, "before"),
        ("odp", asking_slides, "slide 提交材料"),
        ("ods", asking_sheet, "words"),
    ],
)
def test_a_document_that_asks_for_remote_parts_causes_no_request(
    kind: str, make: Callable[[str], bytes], words: str
) -> None:
    with listener() as (url, asked):
        assert words in "\n".join(texts(make(url), kind))
    assert asked == []


@converting
def test_an_old_word_document_with_a_linked_picture_causes_no_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = office._TEXT._replace(suffix="doc", output_filter="MS Word 97")
    way = office._PACKAGES["odt"]._replace(target=target)
    with listener() as (url, asked):
        document = office.convert(asking_text(url), way, 1_000_000)
        assert url.encode("utf-16-le") in document
        assert any("before" in text for text in texts(document, "doc"))
        assert asked == []
        # Without the settings it does ask: the listener listens, and the document wants something.
        monkeypatch.setattr(office, "_SETTINGS", ())
        texts(document, "doc")
        assert any("/picture.png" in line for line in asked)


@converting
def test_a_document_that_asks_for_a_file_of_this_machine_does_not_get_it(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRETWORD")
    found = "\n".join(texts(asking_text(tmp_path.as_uri(), secret.name), "odt"))
    assert "before" in found
    assert "SECRETWORD" not in found
    included = rb"{\rtf1 a {\field{\*\fldinst INCLUDETEXT " + str(secret).encode() + rb"}{\fldrslt old}}\par}"
    assert "SECRETWORD" not in "\n".join(texts(included, "rtf"))


def with_macro(proof: Path) -> bytes:
    """A text whose macro writes a file when the text is opened."""
    module = (
        '<?xml version="1.0"?><script:module xmlns:script="http://openoffice.org/2000/script" '
        'script:name="M" script:language="StarBasic">'
        f'Sub Main\nOpen "{proof}" For Output As #1\nClose #1\nEnd Sub</script:module>'
    )
    space = 'xmlns:library="http://openoffice.org/2000/library"'
    library = (
        f'<library:library {space} library:name="Standard" library:readonly="false" '
        'library:passwordprotected="false"><library:element library:name="M"/></library:library>'
    )
    libraries = (
        f'<library:libraries {space} xmlns:xlink="http://www.w3.org/1999/xlink">'
        '<library:library library:name="Standard" library:link="false"/></library:libraries>'
    )
    macro = "vnd.sun.star.script:Standard.M.Main?language=Basic&amp;location=document"
    return open_document_format(
        "text",
        "<office:text><text:p>words</text:p></office:text>",
        {
            "Basic/Standard/M.xml": module,
            "Basic/Standard/script-lb.xml": library,
            "Basic/script-lc.xml": libraries,
        },
        '<office:scripts><office:event-listeners><script:event-listener script:language="ooo:script" '
        f'script:event-name="dom:load" xlink:href="{macro}" xlink:type="simple"/></office:event-listeners>'
        "</office:scripts>",
    )


@converting
def test_a_macro_for_the_opening_of_a_text_does_not_run(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    assert texts(with_macro(proof), "odt") == ["words"]
    assert not proof.exists()


@converting
@pytest.mark.parametrize(
    ("content", "kind", "code"),
    [
        ((SAMPLES / "testODTEncrypted.odt").read_bytes(), "odt", "encrypted"),
        ((SAMPLES / "testEXCEL_protected_passtika.xls").read_bytes(), "xls", "encrypted"),
        ((SAMPLES / "testWORD_protected_passtika.doc").read_bytes(), "doc", "encrypted"),
        ((SAMPLES / "testWORD6.doc").read_bytes()[:4000], "doc", "truncated"),
        ((SAMPLES / "testRTF-ms932.rtf").read_bytes()[:3000], "rtf", "truncated"),
        (b"{\\rtf1}", "rtf", "empty"),
        (b"{\\rtf1{{{{}", "rtf", "corrupt"),
        (os.urandom(5000), "doc", "corrupt"),
        (office._OLE + bytes(3000), "doc", "corrupt"),
        (b"PK\x03\x04 half of a download", "odt", "truncated"),
        (b"no kind at all", "odt", "unsupported_type"),
    ],
)
def test_what_cannot_be_converted_is_refused_by_its_class(content: bytes, kind: str, code: str) -> None:
    assert refusal(content, kind) == code


@converting
@pytest.mark.slow
def test_a_sheet_of_a_billion_cells_ends_at_the_memory_allowed(tmp_path: Path) -> None:
    cell = (
        '<table:table-cell office:value-type="string" table:number-columns-repeated="1000"><text:p>x</text:p>'
    )
    rows = (
        f'<table:table-row table:number-rows-repeated="1000000">{cell}</table:table-cell></table:table-row>'
    )
    body = f'<office:spreadsheet><table:table table:name="T">{rows}</table:table></office:spreadsheet>'
    (tmp_path / "a.ods").write_bytes(open_document_format("spreadsheet", body))
    with Archive(tmp_path) as archive, pytest.raises(UnreadableError) as refused:
        archive.read({"path": "a.ods", "type": "ods"})
    assert refused.value.code == "memory"


@converting
def test_nothing_of_a_conversion_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen: list[int] = []
    run = office._run

    def watched(command: list[str], folder: Path) -> int | None:
        seen.append(folder.stat().st_mode & 0o777)
        return run(command, folder)

    monkeypatch.setattr(office, "_run", watched)
    texts(FIELDS, "rtf")
    assert refusal(b"{\\rtf1{{{{}", "rtf") == "corrupt"
    assert seen == [0o700, 0o700]
    assert list(tmp_path.iterdir()) == []


def script(folder: Path, words: str) -> Path:
    program = folder / "soffice"
    program.write_text(f"#!/bin/sh\n{words}\n")
    program.chmod(0o755)
    return program


def test_a_conversion_that_hangs_is_ended_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, f"echo $$ > {tmp_path}/pid; exec /bin/sleep 600")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(office, "CONVERSION_SECONDS", 1.0)
    begin = time.monotonic()
    assert refusal(FIELDS, "rtf") == "timeout"
    assert time.monotonic() - begin < 20
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("exit 0", "corrupt"),
        ("exit 81", "corrupt"),
        ("kill -SEGV $$", "crashed"),
        ("kill -XCPU $$", "timeout"),
        ("kill -XFSZ $$", "too_large"),
        ("/bin/mkdir out && : > out/document.docx", "corrupt"),
        ("/bin/mkdir out && exec /usr/bin/head -c 300000000 /dev/zero > out/document.docx", "too_large"),
    ],
)
def test_the_outcome_is_judged_by_the_file_not_by_the_exit_code(
    words: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path, words)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refusal(FIELDS, "rtf") == code


def test_an_outcome_counts_whatever_the_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, "/bin/mkdir out; echo outcome > out/document.docx; exit 9")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert office.convert(FIELDS, office._OTHERS["rtf"], 1000) == b"outcome\n"


@pytest.mark.parametrize(
    ("content", "kind", "package"),
    [
        (FIELDS, "rtf", "libreoffice-writer"),
        (asking_slides("x:"), "odp", "libreoffice-impress"),
        (asking_sheet("x:"), "ods", "libreoffice-calc"),
    ],
)
def test_without_libreoffice_the_package_to_install_is_named(
    content: bytes, kind: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnreadableError, match=package) as refused:
        office.open_document(content, kind, Limits())
    assert refused.value.code == "converter_missing"
    # LibreOffice is there, its part for this kind is not.
    for name in ("soffice", "soffice.bin", "libsofficeapp.so"):
        script(tmp_path, "").rename(tmp_path / name)
    with pytest.raises(UnreadableError, match=package):
        office.open_document(content, kind, Limits())


def test_libreoffice_sees_nothing_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, "/bin/mkdir out; /usr/bin/env > out/document.docx; echo $* >> out/document.docx")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SECRET_KEY", "value-of-the-key")
    seen = office.convert(FIELDS, office._OTHERS["rtf"], 10_000).decode()
    assert "value-of-the-key" not in seen
    home = re.search(r"^HOME=(.*)$", seen, re.MULTILINE)
    assert home is not None
    assert f"-env:UserInstallation=file://{home.group(1)}/profile --headless" in seen


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=2000), st.integers(0, 6656))
def test_any_ole_file_is_told_apart_without_a_crash(noise: bytes, place: int) -> None:
    sample = (SAMPLES / "testWORD6.doc").read_bytes()
    for content in (
        office._OLE + noise,
        sample[:place] + noise + sample[place + len(noise) :],
        sample[:place],
    ):
        compound = office._Compound(content)
        assert compound.is_encrypted() in {True, False}
        assert compound.is_cut() in {True, False}
        assert compound.version() >= 0
        with contextlib.suppress(UnreadableError):
            office._way(content, "doc")
