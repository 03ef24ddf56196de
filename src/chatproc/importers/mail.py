"""One mail as a message: the same for `chatproc import` and for a connector that pulls it from a server.

Key and conversation come from the mail alone, so that it is one message wherever it was found. Never fetches
what a mail links to, and never runs or follows anything in it.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import getaddresses, parsedate_tz
from mimetypes import guess_extension
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from chatproc.attachments.text import NOT_VISIBLE, visible_text
from chatproc.importers.base import Conversation, Message
from chatproc.importers.calendars import calendar_text
from chatproc.importers.mail_lists import is_list_copy, split_at_rule, split_footer, without_mark
from chatproc.importers.mime import header_text, read_mail
from chatproc.whole import clear_abandoned, whole_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from zoneinfo import ZoneInfo

    from chatproc.importers.mime import Part

    Role = Literal["user", "self", "unknown"]
    Save = Callable[[bytes, str, str], str | None]

# A mail that is larger fits no group of the default size and would never be read.
MAX_BODY_CHARS = 16_000
_MAX_HTML_CHARS = 4_000_000
_MAX_ID_CHARS = 450
_MAX_NAME_BYTES = 180
_MAX_MENTIONS = 100
_MAX_ADDRESS_CHARS = 4000
_SHORT_CHARS = 200
_MUCH_LONGER = 4

_ID = re.compile(r"<([^<>]+)>")
_ADDRESS = re.compile(r"[^\s<>()\",;:@]+@[^\s<>()\",;:@]+")
# As archives of mailing lists write it: `bob at example.com (Bob)`.
_ARCHIVED_ADDRESS = re.compile(r"([^\s<>()\",;:@]+) at ([^\s<>()\",;:@]+\.[^\s<>()\",;:@]+) +\((.*)\)\s*")
_REPLY_PREFIX = re.compile(
    r"^\s*(?:(?:re|fw|fwd|aw|wg|sv|vs|tr|rv|回复|回覆|答复|转发|轉寄|轉發|返信|転送)\s*(?:\[\d+\])?\s*[:：]\s*)+",
    re.IGNORECASE,
)
_HAS_ZONE = re.compile(r"[+-]\d{4}\b|:\d\d\s+[A-Za-z]{1,5}\b")
_TITLE = re.compile(r"<title\b", re.IGNORECASE)
_TITLE_END = re.compile(r"</title\b", re.IGNORECASE)
_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]')
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.IGNORECASE)
# A signature is proof, not content.
_SIGNATURES = frozenset(
    {"application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"}
)


@dataclass(slots=True)
class Mail:
    """A mail as understood.

    Attributes:
        message: The message; its `line` and `file` are the caller's to set. `sent_at` is -1 without any
            time, and such a mail has no place among messages.
        fingerprint: Of its content: two mails that share a Message-ID and differ here are not the same.
        core: Of what no list changes: who said what and when, down to the last rule. Copies through two
            lists that differ in their footers alone have the same.
        mended: What was damaged and how it was read.
        timezone_assumed: Its date has no zone and was read in the one given.
    """

    message: Message
    fingerprint: str
    core: str
    mended: list[str]
    timezone_assumed: bool


@dataclass(slots=True)
class _Body:
    """What a mail holds, gathered from its parts."""

    texts: list[str] = field(default_factory=list)
    footer: str = ""
    files: list[Part] = field(default_factory=list)
    mended: list[str] = field(default_factory=list)
    hides: bool = False

    def text(self) -> str:
        return "\n\n".join(filter(None, self.texts))

    def take_off_footer(self) -> None:
        """Keep the footer of a mailing list apart."""
        text, self.footer = split_footer(self.text())
        self.texts = [text]

    def add_calendar(self, text: str) -> None:
        """An invitation comes as a form of the mail and as a file beside it."""
        if text not in self.texts:
            self.texts.append(text)


def mail_message(  # noqa: PLR0913 - each a fact that the mail does not hold
    raw: bytes,
    *,
    account: str = "",
    zone: ZoneInfo,
    received_at: int | None = None,
    save: Save | None = None,
    max_body_chars: int = MAX_BODY_CHARS,
) -> Mail:
    r"""Read one RFC 5322 message.

    The key is the Message-ID, for whole accounts and folders alike. Without one it is a fingerprint of date,
    sender, subject and text. The conversation is the thread: the first mail that it refers to. Of a copy that
    came through a mailing list the list's mark and footer are taken off; it has revision 0, any other 1, so
    that the unaltered copy stands wherever both are found. Subject and text together are the message's text.

    Args:
        raw: The mail.
        account: The account it was found in; where that is an address, mails from it are `self`.
        zone: For dates without a zone.
        received_at: When it arrived, in milliseconds, for mails that show no readable date at all.
        save: Given an attachment's content, SHA-256 and name; returns its path below the archive root, or
            `None` when it is not kept.
        max_body_chars: The text is cut there; the same in every reader of the same mail.

    Returns:
        The mail.

    Example:
        >>> from zoneinfo import ZoneInfo
        >>> raw = b"Message-ID: <1@x>\nDate: 1 Jul 2026 10:00 +0800\nSubject: Room\n\n302\n"
        >>> mail = mail_message(raw, zone=ZoneInfo("UTC"))
        >>> mail.message.key, mail.message.text
        ('email:1@x', 'Room\n\n302')
    """
    part = read_mail(raw)
    charset = next((leaf.charset for leaf in _leaves(part) if leaf.charset), "")
    body = _Body()
    _gather(part, body)
    subject = header_text(part.field("subject"), charset)
    through_list = is_list_copy(part)
    if through_list:
        subject = without_mark(subject, part)
        body.take_off_footer()
    text = "\n\n".join(filter(None, [subject, _capped(body, max_body_chars)]))
    sent_at, assumed = _sent_at(part, zone, received_at, body.mended)
    senders = _addresses([part.field("from") or part.field("sender")], charset)
    sender_id, sender_name = senders[0] if senders else (None, None)
    identity, root, parent = _kin(part)
    nameless = _fingerprint(header_text(part.field("date")), sender_id or sender_name, subject, body.text())
    recipients = _addresses(part.fields.get("to", []), charset)
    message = Message(
        conversation=Conversation(
            "email",
            account,
            _bounded(root or f"~{nameless}"),
            _REPLY_PREFIX.sub("", subject) or None,
            "thread",
        ),
        key=mail_key(identity) if identity else f"email:~{nameless}",
        sent_at=sent_at,
        line=0,
        file="",
        text=text,
        message_id=identity,
        revision=int(not through_list),
        sender_id=sender_id,
        sender_name=sender_name,
        role=_role(sender_id, sender_name, account),
        mentions=[{"id": address, "name": name} for address, name in recipients[:_MAX_MENTIONS]],
        reply_to=mail_key(parent) if parent and parent != identity else None,
        attachments=[_attachment(place, file, charset, save) for place, file in enumerate(body.files, 1)],
        source=_provenance(part, charset, body),
    )
    content = _content(message)
    core = [sent_at, sender_id, split_at_rule(text)[0], content[-1]]
    return Mail(message, _fingerprint(*content), _fingerprint(*core), body.mended, assumed)


def mail_key(message_id: str) -> str:
    """The `message_key` of the mail with a Message-ID (without its angle brackets).

    Example:
        >>> mail_key("4711@mail.example.com")
        'email:4711@mail.example.com'
    """
    return f"email:{_bounded(message_id.replace('%', '%25').replace('~', '%7E'))}"


def attachment_store(folder: Path, archive_root: Path | None) -> Save | None:
    """What `mail_message` takes as `save`: it writes attachments below a folder, each content once.

    Args:
        folder: Where they go, as `ab/abcdef…/name`.
        archive_root: `input.archive_root`, which attachment paths are relative to.

    Returns:
        `None` when the folder does not lie below the archive root: nobody could read what was written.
    """
    folder = folder.absolute()
    if archive_root is None or not folder.resolve().is_relative_to(archive_root.resolve()):
        return None
    below = folder.resolve().relative_to(archive_root.resolve())

    def save(content: bytes, digest: str, name: str) -> str:
        place = Path(digest[:2], digest, _file_name(name))
        target = folder / place
        if not target.is_file() or target.stat().st_size != len(content):
            target.parent.mkdir(parents=True, exist_ok=True)
            clear_abandoned(target.parent)
            with whole_file(target) as file:
                file.write(content)
        return (below / place).as_posix()

    return save


def _file_name(name: str) -> str:
    """A name that every file system takes and that leads nowhere else."""
    name = _UNSAFE.sub("_", unicodedata.normalize("NFC", name)).strip(". ") or "attachment"
    stem, dot, suffix = name.rpartition(".")
    if len(name.encode()) > _MAX_NAME_BYTES and dot:
        suffix = suffix.encode()[:20].decode("utf-8", "ignore")
        stem = stem.encode()[: _MAX_NAME_BYTES - 21].decode("utf-8", "ignore")
        name = f"{stem}.{suffix}"
    name = name.encode()[:_MAX_NAME_BYTES].decode("utf-8", "ignore")
    return f"_{name}" if _RESERVED.match(name) else name


def _leaves(part: Part) -> Iterable[Part]:
    if not part.parts:
        yield part
    for inner in part.parts:
        yield from _leaves(inner)


def _gather(part: Part, body: _Body) -> None:
    """Read a part and what is in it: texts in reading order, files in the order of the mail."""
    kind = part.type
    if kind == "multipart/alternative":
        _gather_alternative(part, body)
    elif kind == "message/rfc822" and part.parts:
        _gather_forwarded(part.parts[0], body)
    elif part.parts:
        for inner in part.parts:
            _gather(inner, body)
    elif kind == "message/external-body":
        body.texts.append(f"[File elsewhere] {part.name() or ''}".rstrip())
    elif kind in _SIGNATURES:
        pass
    elif _is_text(part):
        _add_text(part, body)
    else:
        body.files.append(part)
        if kind == "text/calendar":
            body.add_calendar(calendar_text(part.text()[0]))


def _is_text(part: Part) -> bool:
    if part.disposition == "attachment" or not part.type.startswith(("text/", "message/")):
        return False
    return part.type in ("text/html", "text/plain", "text/calendar") or part.name() is None


def _add_text(part: Part, body: _Body) -> None:
    text, note = part.text()
    if note:
        body.mended.append(note)
    if part.type == "text/html":
        body.texts.append(_seen(text, body))
    elif part.type == "text/calendar":
        body.add_calendar(calendar_text(text))
    else:
        body.texts.append(text.strip("\n").rstrip())


def _seen(source: str, body: _Body) -> str:
    """What a person sees of an HTML mail."""
    if len(source) > _MAX_HTML_CHARS:
        body.mended.append(f"HTML of {len(source)} characters, of which {_MAX_HTML_CHARS} were read")
    lines = visible_text(_untitled(source[:_MAX_HTML_CHARS]))[0].split("\n")
    shown = [line for line in lines if not line.startswith(NOT_VISIBLE)]
    body.hides = body.hides or len(shown) < len(lines)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(shown)).strip()


def _untitled(source: str) -> str:
    """A mail shows no title, unlike a page; what stands in it is the name of a template."""
    begin = _TITLE.search(source)
    end = _TITLE_END.search(source, begin.end()) if begin else None
    return source[: begin.start()] + source[end.start() :] if begin and end else source


def _gather_alternative(part: Part, body: _Body) -> None:
    """One of several forms of the same: the plain one, unless it only says that there is another."""
    forms: list[tuple[str, _Body]] = []
    for inner in part.parts:
        form = _Body()
        _gather(inner, form)
        body.files += form.files
        forms.append(("calendar" if inner.type == "text/calendar" else _kind(inner), form))
    said = [(kind, form) for kind, form in forms if form.text() and kind != "calendar"]
    chosen = next((form for kind, form in said if kind == "plain"), None)
    others = [form for kind, form in said if kind != "plain"]
    if others and (chosen is None or _is_stub(chosen.text(), others[-1].text())):
        chosen = others[-1]
    for form in [*([chosen] if chosen else []), *(form for kind, form in forms if kind == "calendar")]:
        body.texts += form.texts
        body.mended += form.mended
        body.hides = body.hides or form.hides


def _kind(part: Part) -> str:
    return "plain" if any(leaf.type == "text/plain" for leaf in _leaves(part)) else "rich"


def _is_stub(plain: str, rich: str) -> bool:
    return len(plain) < _SHORT_CHARS and len(rich) > _MUCH_LONGER * len(plain)


def _gather_forwarded(mail: Part, body: _Body) -> None:
    """A mail inside a mail: its head in words, its text, its files."""
    charset = next((leaf.charset for leaf in _leaves(mail) if leaf.charset), "")
    shown = [
        f"{name}: {header_text(mail.field(name.lower()), charset)}"
        for name in ("From", "To", "Date", "Subject")
        if mail.field(name.lower())
    ]
    inner = _Body()
    _gather(mail, inner)
    body.texts.append("\n".join(["[Forwarded message]", *shown, "", inner.text()]).strip())
    body.files += inner.files
    body.mended += inner.mended
    body.hides = body.hides or inner.hides


def _capped(body: _Body, limit: int) -> str:
    text = body.text()
    if len(text) <= limit:
        return text
    body.mended.append(f"a text of {len(text)} characters, of which {limit} are kept")
    return f"{text[:limit]}\n[… {len(text) - limit} more characters]"


def _sent_at(part: Part, zone: ZoneInfo, received_at: int | None, mended: list[str]) -> tuple[int, bool]:
    """Milliseconds, and whether the zone was assumed: by the date, else by who first passed the mail on."""
    for written in part.fields.get("date", []):
        time = _time(written, zone)
        if time is not None:
            return time
    for hop in reversed(part.fields.get("received", [])):
        time = _time(hop.rpartition(b";")[2], zone)
        if time is not None:
            mended.append("no readable date: the time at which it was first passed on")
            return time
    if received_at is not None:
        mended.append("no readable date: the time of arrival")
        return received_at, False
    return -1, False


def _time(written: bytes, zone: ZoneInfo) -> tuple[int, bool] | None:
    return milliseconds(header_text(written), zone)


def milliseconds(written: str, zone: ZoneInfo | None) -> tuple[int, bool] | None:
    """A date as mail writes it, and whether it has no zone; then it is read in `zone`, `None` for UTC.

    Example:
        >>> milliseconds("Wed, 1 Jul 2026 10:00:00 +0800", None)
        (1782871200000, False)
    """
    try:
        parts = parsedate_tz(written[:200])
        if parts is None:
            return None
        # The library takes a missing zone for UTC.
        offset = parts[9] if _HAS_ZONE.search(written) else None
        time = datetime(*parts[:6], tzinfo=zone or UTC if offset is None else UTC)
        since_1970 = round((time - timedelta(seconds=offset or 0)).timestamp() * 1000)
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
    return (since_1970, offset is None) if since_1970 >= 0 else None


def _kin(part: Part) -> tuple[str | None, str | None, str | None]:
    """The mail's own id, that of the first mail of its thread, and that of the mail it answers."""
    own, references = _ids(part.field("message-id")), _ids(part.field("references"))
    answered = _ids(part.field("in-reply-to"))[:1] or references[-1:]
    first = references[:1] or answered or own
    return (*own, None)[0], (*first, None)[0], (*answered, None)[0]


def _ids(field_value: bytes) -> list[str]:
    """The Message-IDs in a field, in its order, without white space and brackets."""
    text = header_text(field_value)
    found = _ID.findall(text) or text.split()[:1]
    ids = ("".join(identity.split()) for identity in found)
    return [identity for identity in ids if identity.strip("<>")]


def _bounded(identity: str) -> str:
    if len(identity) <= _MAX_ID_CHARS:
        return identity
    return "~" + hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()


def _addresses(fields: list[bytes], charset: str) -> list[tuple[str | None, str | None]]:
    """Addresses, lower case, each with its name; what is no address is a name."""
    found: dict[tuple[str | None, str | None], None] = {}
    for written in fields:
        # Structure first, words after: a decoded name may hold commas and brackets.
        text = written[:_MAX_ADDRESS_CHARS].decode("ascii", "surrogateescape")
        try:
            pairs = getaddresses([text])
        except (RecursionError, IndexError, ValueError):
            pairs = []
        named = [(_shown(name, charset), address) for name, address in pairs if "@" in address]
        if not named:
            whole = _shown(text, charset)
            if archived := _ARCHIVED_ADDRESS.fullmatch(whole):
                named = [(archived[3], f"{archived[1]}@{archived[2]}")]
        if not named:
            match = _ADDRESS.search(whole)
            named = [(whole, match[0])] if match else [(whole, "")]
        for written_name, address in named:
            identity, name = _shown(address, charset).lower() or None, written_name.strip("\"' ")
            if identity or name:
                found[identity, name if name and name.lower() != identity else None] = None
    return list(found)


def _shown(text: str, charset: str) -> str:
    return header_text(text.encode("utf-8", "surrogateescape"), charset)


def _role(sender_id: str | None, sender_name: str | None, account: str) -> Role:
    if sender_id is not None and sender_id == account.lower():
        return "self"
    return "user" if sender_id or sender_name else "unknown"


def _attachment(place: int, part: Part, charset: str, save: Save | None) -> dict[str, Any]:
    content = part.content()
    digest = hashlib.sha256(content).hexdigest()
    name = part.name(charset)
    path = save(content, digest, name or f"attachment{guess_extension(part.type) or ''}") if save else None
    return {
        "id": f"a{place}",
        "name": name,
        "mime": part.type,
        "size": len(content),
        "sha256": digest,
        "path": path,
        "state": "present" if path else "not_exported",
    }


def _provenance(part: Part, charset: str, body: _Body) -> dict[str, Any]:
    """Who else got it, and what the text does not show."""
    found: dict[str, Any] = {
        name: header_text(part.field(name), charset)[:2000]
        for name in ("from", "to", "cc", "reply-to", "list-id", "in-reply-to")
        if part.field(name)
    }
    if body.footer:
        found["list_footer"] = body.footer
    return {**found, **({"hidden_text": True} if body.hides else {})}


def _content(message: Message) -> list[Any]:
    return [
        message.sent_at,
        message.sender_id,
        message.text,
        message.mentions,
        message.reply_to,
        [(file["name"], file["sha256"]) for file in message.attachments],
    ]


def _fingerprint(*fields: object) -> str:
    return hashlib.sha256(json.dumps(fields).encode()).hexdigest()[:32]
