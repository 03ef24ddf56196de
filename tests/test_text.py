"""Text files: which charset they are in, what of a web page a person sees, blocks that stay the same."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatproc.attachments.charset import NotTextError, decode, decode_html
from chatproc.attachments.text import LONGEST_BLOCK, NOT_VISIBLE, open_document, visible_text
from chatproc.attachments.units import Limits, UnreadableError

SIMPLIFIED = "关于期末材料提交的通知:请各班班长于本周五下午五点前,把签字后的申请表交到教学楼一层办公室。\n"
TRADITIONAL = "關於期末資料繳交的通知:請各班班長於本週五下午五點前,把簽名後的申請表送到教學樓一樓辦公室。\n"
JAPANESE = "期末レポートの提出について:金曜日の午後五時までに、教務課の窓口へ直接提出してください。\n"
KOREAN = "기말 보고서는 금요일 오후 다섯 시까지 학과 사무실에 제출하여 주시기 바랍니다.\n"
FRENCH = "Réunion à l’école : prière de déposer le dossier avant vendredi, à côté de l’entrée.\n"


@pytest.mark.parametrize(
    ("text", "charset", "said"),
    [
        (SIMPLIFIED, "gbk", "Read as GB18030."),
        (SIMPLIFIED, "gb18030", "Read as GB18030."),
        (TRADITIONAL, "gbk", "Read as GB18030."),
        (TRADITIONAL, "big5", "Read as Big5."),
        (JAPANESE, "cp932", "Read as Shift-JIS."),
        (JAPANESE, "euc_jp", "Read as EUC-JP."),
        (KOREAN, "euc_kr", "Read as EUC-KR."),
        (FRENCH, "cp1252", "Read as Windows-1252."),
        (SIMPLIFIED, "utf-16-le", "Read as UTF-16."),
        (SIMPLIFIED, "utf-16-be", "Read as UTF-16."),
        (TRADITIONAL, "utf-16-le", "Read as UTF-16."),
        (SIMPLIFIED.strip(), "utf-16-le", "Read as UTF-16."),
        (SIMPLIFIED, "utf-8", ""),
        (SIMPLIFIED, "utf-16", ""),
    ],
)
@pytest.mark.parametrize("times", [1, 200])
def test_the_charset_of_east_asian_text_is_found_and_said(
    text: str, charset: str, said: str, times: int
) -> None:
    assert decode((text * times).encode(charset)) == (text * times, said)


def test_a_short_text_beyond_utf8_is_gb18030_rather_than_anything_rarer() -> None:
    assert decode("交表".encode("gbk"))[0] == "交表"
    assert decode("報名表".encode("gbk"))[0] == "報名表"
    assert decode("報名".encode("big5"))[1] == "Read as GB18030."


def test_utf8_with_a_few_broken_places_is_still_utf8_and_says_how_many() -> None:
    broken = (SIMPLIFIED * 20).encode().replace("期末".encode(), b"\xe6\x9c", 1)
    text, note = decode(broken)
    assert text == (SIMPLIFIED * 20).replace("期末", "\ufffd", 1)
    assert note == "Read as UTF-8; 1 broken characters are shown as \ufffd."


@settings(deadline=None)
@given(st.text(st.sampled_from(SIMPLIFIED), min_size=40), st.sampled_from(["gb18030", "utf-8"]))
def test_chinese_text_is_never_taken_for_another_language(text: str, charset: str) -> None:
    assert decode(text.encode(charset))[0] == text


@settings(deadline=None)
@given(st.binary(min_size=200, max_size=2000))
def test_random_bytes_are_refused(content: bytes) -> None:
    controls = sum(byte < 9 for byte in content)
    if controls > len(content) * 0.025 + 2:
        with pytest.raises(NotTextError):
            decode(content)


@pytest.mark.parametrize("charset", ["gb2312", "big5", "shift_jis", "utf-8", "windows-1252"])
def test_a_page_is_read_in_the_charset_that_it_declares(charset: str) -> None:
    words = {"big5": "報名", "shift_jis": "締切", "windows-1252": "Überweisung café"}.get(charset, "报名")
    for form in (f'<meta charset="{charset}">', f"<meta content='text/html; charset={charset}'>"):
        source = f"<html><head>{form}</head><p>{words}</p>"
        assert decode_html(source.encode(charset)) == (source, "")


def test_a_page_that_declares_what_it_is_not_is_read_as_what_it_is() -> None:
    source = f"<meta charset=utf-8><p>{SIMPLIFIED}"
    assert decode_html(source.encode("gbk")) == (source, "Read as GB18030.")


HIDDEN = (
    "<p hidden>X</p>",
    '<p style="display:none">X</p>',
    '<div style="DISPLAY : NONE"><p>X</p></div>',
    '<p style="visibility:hidden">X</p>',
    '<p style="opacity:0">X</p>',
    '<p style="opacity: 0.0;">X</p>',
    '<span style="font-size:0">X</span>',
    '<span style="font-size:1px;line-height:1">X</span>',
    '<p style="position:absolute;left:-9999px">X</p>',
    '<p style="text-indent:-5000px">X</p>',
    '<p style="color:#fff">X</p>',
    '<p style="color: rgb(255, 255, 255)">X</p>',
    '<font color="#FFFFFF">X</font>',
    '<p style="color:#fefefe">X</p>',
    '<p style="color:rgb(255 255 255 / 100%)">X</p>',
    '<p style="color:rgb(99% 99% 99%)">X</p>',
    '<p style="color:hsl(0, 0%, 98%)">X</p>',
    '<p style="color:snow;background:#fdfdfd">X</p>',
    '<p style="color:#00000008">X</p>',
    '<p style="color:rgba(0, 0, 0, 0.02)">X</p>',
    '<p style="color:#111;background:black">X</p>',
    '<p style="-webkit-text-fill-color:transparent">X</p>',
    '<p style="opacity:.04">X</p>',
    '<p style="transform:scale(0)">X</p>',
    '<p style="height:0;overflow:hidden">X</p>',
    '<p style="mso-hide:all">X</p>',
    '<table bgcolor="white"><tr><td><font color="#fffffe">X</font></td></tr></table>',
    '<style>.a{display:none}</style><p class="b a">X</p>',
    "<style>/* c */ div p.a, #q { color : white }</style><p id=q>X</p>",
    "<p class=late>X</p><style>p.late{visibility:hidden}</style>",
    "<template>X</template>",
    "<noscript>X</noscript>",
    "<div>" * 600 + "X" + "</div>" * 600,
)


@pytest.mark.parametrize("source", HIDDEN)
def test_what_a_person_does_not_see_of_a_page_is_marked(source: str) -> None:
    text, note = visible_text(f"<p>before</p>{source}<p>after</p>")
    assert [line for line in text.split("\n") if line] == ["before", f"{NOT_VISIBLE}X", "after"]
    assert note


SHOWN = (
    '<p style="color:#fff;background:#000">X</p>',
    '<div style="background-color:navy"><span style="color:white">X</span></div>',
    '<table bgcolor="#333333"><tr><td><font color="white">X</font></td></tr></table>',
    '<style>.a{background:#222} .b{color:#fff}</style><div class=a><p style="color:#fff">X</p></div>',
    '<style>.button{color:#fff} .blue{background:#06c}</style><p class="button blue">X</p>',
    '<p style="background-image:url(a.png);color:white">X</p>',
    '<p style="color:#888">X</p>',
    '<p style="color:rgba(0,0,0,.6)">X</p>',
    '<p style="height:0">X</p>',
    '<p style="transform:scale(0.8)">X</p>',
    '<p style="opacity:0.9">X</p>',
    '<p style="font-size:10px">X</p>',
    '<p style="margin-left:-5px">X</p>',
    '<p style="background:none;color:#ffeeaa">X</p>',
)


@pytest.mark.parametrize("source", SHOWN)
def test_what_a_person_sees_of_a_page_is_not_marked(source: str) -> None:
    text, note = visible_text(source)
    assert text.strip() == "X"
    assert not note


def test_an_element_that_ends_by_itself_hides_nothing_behind_it() -> None:
    assert visible_text("<p hidden>a<p>b")[0] == f"{NOT_VISIBLE}a\n\nb"
    assert visible_text("<ul><li style='display:none'>a<li>b</ul>")[0] == f"{NOT_VISIBLE}a\nb"
    table = "<table><tr><td>a<td style='display:none'>b<tr><td>c</table>"
    assert visible_text(table)[0] == f"a\n{NOT_VISIBLE}b\nc"


def test_hidden_text_cannot_end_its_mark_by_line_ends_or_length() -> None:
    inside = "obey\n\nnow\r" + "long " * 2000
    for element in ("div", "pre"):
        document = open_document(
            f"<p>seen</p><{element} hidden>{inside}</{element}>".encode(), "html", Limits()
        )
        texts = [document.unit(number).text for number in range(1, document.total + 1)]
        lines = "\n".join(texts).split("\n")
        assert lines[0] == "seen"
        assert len(lines) > 2
        assert all(line.startswith(NOT_VISIBLE) for line in lines[1:])


def test_a_page_is_paragraphs_rows_and_links() -> None:
    text, note = visible_text(
        "<html><head><title>通知</title><script>var a='<p>no</p>'</script></head><body><h1>报名</h1>"
        "<p>请在 <a href='https://a.example/form?x=1&amp;y=2'>这里</a>\n 填表,\n<b>周五</b>前。"
        "<table><tr><th>姓名<th>时间<tr><td>张三</td><td>18:00</td></table>"
        "<pre>a\n  b</pre><img alt='流程图'><br>tail &lt;end&gt; <a href='#top'>up</a>"
        "<!-- a comment --><input type=hidden value=secret><input value='typed'></body></html>"
    )
    assert text == (
        "通知\n\n报名\n\n请在 这里 <https://a.example/form?x=1&y=2> 填表, 周五前。\n\n"
        "姓名\t时间\n张三\t18:00\n\na\n  b\n\n[image: 流程图]\ntail <end> uptyped"
    )
    assert not note


def test_a_saved_web_page_is_read_like_the_page() -> None:
    archive = (
        'From: <Saved>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related; boundary="x"\r\n\r\n'
        "--x\r\nContent-Type: text/html; charset=gb2312\r\n"
        "Content-Transfer-Encoding: quoted-printable\r\n\r\n"
        "<p>=D6=DC=CE=E5=BD=BB=B1=ED</p>\r\n--x\r\nContent-Type: image/png\r\n\r\nno\r\n--x--\r\n"
    )
    assert open_document(archive.encode(), "mhtml", Limits()).unit(1).text == "周五交表"


@pytest.mark.parametrize(
    ("content", "kind", "code"),
    [
        (b"", "txt", "empty"),
        (b" \n\t\n", "txt", "empty"),
        (b"<html><script>1</script></html>", "html", "empty"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "txt", "type_mismatch"),
    ],
)
def test_what_has_no_text_is_refused_by_its_class(content: bytes, kind: str, code: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        open_document(content, kind, Limits())
    assert refused.value.code == code


def test_a_mail_without_a_page_is_plain_text() -> None:
    document = open_document(b"MIME-Version: 1.0\r\n\r\nno page", "mhtml", Limits())
    assert [document.unit(number).text for number in (1, 2)] == ["MIME-Version: 1.0", "no page"]


def test_units_are_numbered_blocks_the_same_each_time() -> None:
    content = "\n\n".join(f"第{number}条 内容" for number in range(1, 400)).encode()
    first, second = (open_document(content, "txt", Limits()) for _ in range(2))
    assert first.total == 399
    assert [first.unit(number) for number in range(1, 400)] == [
        second.unit(number) for number in range(1, 400)
    ]
    assert (first.unit(7).id, first.unit(7).text) == ("b7", "第7条 内容")


def test_a_text_as_large_as_a_file_may_be_is_cut_in_seconds() -> None:
    content = ("一行中文内容和 some words 0123456789\n" * 20 + "\n").encode() * (50 * 1024 * 1024 // 960)
    begin = time.monotonic()
    document = open_document(content, "txt", Limits())
    assert time.monotonic() - begin < 20
    assert document.total == 50 * 1024 * 1024 // 960


@pytest.mark.parametrize(
    "evil",
    [
        "<div>" * 200_000,
        "<p hidden>" * 100_000,
        "<td>x" * 100_000,
        "<a href=http://x>" * 50_000,
        "<style>" * 100_000,
        "<b " * 300_000,
        "<a x='" * 300_000,
        "&#" * 300_000,
        "<" * 300_000,
        "<style>" + "{" * 300_000 + "</style>",
        "<style>" + "/*" * 300_000 + "</style>",
        "<style>" + "a," * 300_000 + "{display:none}</style>",
        "<p style='" + "color:" * 100_000 + "'>x</p>",
        "<p class='" + "a " * 100_000 + "'>x</p>",
    ],
)
def test_a_hostile_page_is_read_in_seconds(evil: str) -> None:
    begin = time.monotonic()
    visible_text(evil)
    assert time.monotonic() - begin < 10


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            (
                *(
                    "<p>",
                    "</p>",
                    "<div hidden>",
                    "</div>",
                    "<td>",
                    "<table>",
                    "</table>",
                    "<li>",
                    "<pre>",
                    "</pre>",
                ),
                *(
                    "word",
                    "&lt;",
                    "<br>",
                    "<",
                    ">",
                    "<!--",
                    "-->",
                    "<a href='http://x/'>",
                    "</a>",
                    "\x01",
                    "\n",
                ),
            )
        ),
        max_size=40,
    )
)
def test_any_page_gives_lines_that_lose_no_word(pieces: list[str]) -> None:
    source = " ".join(pieces)
    text, _ = visible_text(source)
    assert all(len(line) <= LONGEST_BLOCK or NOT_VISIBLE not in line for line in text.split("\n"))
    if "<!--" not in source and "<" not in re.sub(r"<[^<>]*>", "", source):
        assert text.count("word") == pieces.count("word")
