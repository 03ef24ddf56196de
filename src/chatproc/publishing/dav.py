"""One list of a CalDAV server (RFC 4791): what is in it, its items, and writing one on a condition.

The password goes to the configured address alone: no redirect is followed, no proxy or setting of the
environment is used, certificates are always checked. What the server says is hostile: it is bounded, XML with
a DOCTYPE is refused, and its addresses are never asked, only the names in them are read.
"""

from __future__ import annotations

import re
import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from chatproc.errors import ChatprocError, CredentialError, without_secret
from chatproc.plaintext import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

    from chatproc.config import CaldavTarget

_LARGEST_ANSWER = 64 << 20
_SILENCE = 60.0
_LONGEST = 600.0
"""Seconds for one answer: a server must not keep a publish for ever with a byte now and then."""
_SHOWN = 200
_DEEPEST = 100
_AT_ONCE = 100
_DAV, _CAL = "{DAV:}", "{urn:ietf:params:xml:ns:caldav}"
_HREF, _ETAG, _DATA = f"{_DAV}href", f"{_DAV}getetag", f"{_CAL}calendar-data"
_OPENING = '<?xml version="1.0" encoding="utf-8"?>'
_SPACES = 'xmlns="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"'
_LIST = (
    f'{_OPENING}<c:calendar-query {_SPACES}><prop><getetag/></prop><c:filter><c:comp-filter name="VCALENDAR">'
    '<c:comp-filter name="VTODO"/></c:comp-filter></c:filter></c:calendar-query>'
)
_ITEMS = (
    f"{_OPENING}<c:calendar-multiget {_SPACES}><prop><getetag/><c:calendar-data/></prop>{{}}"
    "</c:calendar-multiget>"
)
_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}\.ics")

_MULTISTATUS = 207
_WRITTEN = {200, 201, 204}
_UNAUTHORIZED, _FORBIDDEN, _MOVED_ON = 401, 403, 412
_AWAY = {429, 502, 503, 504}
"""The server is not there or wants to be left alone; another 5xx may be about one item."""


class RefusedError(ChatprocError):
    """The server does not take this one item; the others may go on."""


@dataclass(frozen=True)
class Item:
    """A file of the list as it is there."""

    etag: str
    text: str


class TaskList:
    """The list; use as a context.

    Args:
        target: Says where.
        secret: The password, if one is wanted.

    Attributes:
        requests: How many were made.
    """

    def __init__(self, target: CaldavTarget, secret: str | None) -> None:
        """Nothing is sent yet.

        Raises:
            ChatprocError: The file of certificates cannot be used.
        """
        import httpx2

        self.requests = 0
        self._secret = secret
        self._place = urlsplit(target.url).netloc
        self._address = f"{target.url}/"
        self._http = httpx2.Client(
            auth=None if secret is None else httpx2.BasicAuth(target.user, secret),
            verify=_trust(target),
            trust_env=False,
            follow_redirects=False,
            timeout=_SILENCE,
            headers={"User-Agent": "chatproc"},
        )

    def __enter__(self) -> Self:
        """The list itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection."""
        self._http.close()

    def etags(self) -> dict[str, str]:
        """The ETag of each task's file, by the file's name; `""` where the server gives none."""
        return {name: item.etag for name, item in self._report(_LIST)}

    def items(self, names: Iterable[str]) -> dict[str, Item]:
        """Files by their names; what is gone meanwhile is left out."""
        wanted = list(names)
        path = urlsplit(self._address).path
        found: dict[str, Item] = {}
        for begin in range(0, len(wanted), _AT_ONCE):
            piece = wanted[begin : begin + _AT_ONCE]
            hrefs = "".join(f"<href>{escape(path + name)}</href>" for name in piece)
            found |= {
                name: item for name, item in self._report(_ITEMS.format(hrefs)) if name in piece and item.text
            }
        return found

    def put(self, name: str, text: str, *, instead_of: str | None) -> str:
        """Write a file, if it is as it was seen.

        Args:
            name: Its name.
            text: A calendar.
            instead_of: The ETag of what it replaces; `None`: there must be none.

        Returns:
            The new ETag; `""` where the server does not tell.

        Raises:
            RefusedError: It changed meanwhile, or the server does not take it.
        """
        condition = {"If-None-Match": "*"} if instead_of is None else {"If-Match": instead_of}
        if not instead_of and instead_of is not None:
            condition = {}  # the server knows no ETags
        headers = {"Content-Type": "text/calendar; charset=utf-8", **condition}
        status, _, etag = self._ask("PUT", self._address + name, text, headers)
        if status == _MOVED_ON:
            raise RefusedError("it was changed there at the same moment", where=self._place)
        if status not in _WRITTEN:
            raise RefusedError(f"the server answered {status}", where=self._place)
        return etag

    def _report(self, body: str) -> Iterator[tuple[str, Item]]:
        headers = {"Content-Type": "application/xml; charset=utf-8", "Depth": "1"}
        status, content, _ = self._ask("REPORT", self._address, body, headers)
        if status == _FORBIDDEN:
            raise self._no_leave("the server lets nobody of this name read the list")
        if status >= 500:  # noqa: PLR2004 - HTTP
            raise ChatprocError(f"the server answered {status}", where=self._place)
        if status != _MULTISTATUS:
            what = f"the server answered {status}, so this is no task list of a CalDAV server"
            raise ChatprocError(what, where=self._place, hint="url is the address of the list itself")
        yield from _responses(content, self._place)

    def _ask(self, method: str, address: str, body: str, headers: dict[str, str]) -> tuple[int, bytes, str]:
        """Status, content and ETag of an answer that is one."""
        import httpx2

        self.requests += 1
        try:
            with self._http.stream(method, address, content=body.encode(), headers=headers) as answer:
                content = self._content(answer)
        except httpx2.TimeoutException:
            raise ChatprocError("no answer in time", where=self._place) from None
        except httpx2.HTTPError as error:
            said = one_line(without_secret(str(error), self._secret))[:_SHOWN]
            raise ChatprocError(f"no connection: {said or type(error).__name__}", where=self._place) from None
        status = int(answer.status_code)
        if status == _UNAUTHORIZED:
            raise self._no_leave("the server refuses user or password")
        if 300 <= status < 400:  # noqa: PLR2004 - HTTP
            hint = "no redirect is followed: write the address that the list has now into url"
            raise ChatprocError(f"the server redirects ({status})", where=self._place, hint=hint)
        if status in _AWAY:
            raise ChatprocError(f"the server answered {status}", where=self._place)
        return status, content, _strong(str(answer.headers.get("etag", "")))

    def _content(self, answer: Any) -> bytes:  # noqa: ANN401 - httpx2 is imported where it is used
        content = bytearray()
        latest = time.monotonic() + _LONGEST
        for chunk in answer.iter_bytes():
            content += chunk
            if time.monotonic() > latest:
                raise ChatprocError(f"an answer that takes over {_LONGEST:g} s", where=self._place)
            if len(content) > _LARGEST_ANSWER:
                raise ChatprocError(f"an answer of more than {_LARGEST_ANSWER >> 20} MB", where=self._place)
        return bytes(content)

    def _no_leave(self, what: str) -> CredentialError:
        hint = "see user, and secret_file or secret_env, of this entry of [[publish]]"
        return CredentialError(what, where=self._place, hint=hint)


def _trust(target: CaldavTarget) -> ssl.SSLContext:
    """The system's authorities, and those of a file beside them."""
    context = ssl.create_default_context()
    try:
        if target.ca_file is not None:
            context.load_verify_locations(target.ca_file)
    except OSError as error:
        what = f"ca_file cannot be used: {error.strerror or 'no certificate in it'}"
        where = str(target.ca_file)
        raise ChatprocError(what, where=where, hint="a file with certificates in PEM") from error
    return context


class _Files:
    """What an answer in XML tells of files; the rest is dropped as it comes: a tree is 20 times as large."""

    def __init__(self) -> None:
        self._found: list[dict[str, str]] = []
        self._pieces: list[str] | None = None
        self._depth = 0

    def start(self, tag: str, _: object) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError("the parser remembers every element that is open")
        if tag == f"{_DAV}response":
            self._found.append({})
        of_a_file = self._found and tag in {_HREF, _ETAG, _DATA} and tag not in self._found[-1]
        self._pieces = [] if of_a_file else None

    def data(self, text: str) -> None:
        if self._pieces is not None:
            self._pieces.append(text)

    def end(self, tag: str) -> None:
        if self._pieces is not None:
            self._found[-1][tag] = "".join(self._pieces)
        self._pieces = None
        self._depth -= 1

    def doctype(self, *_: object) -> None:
        raise ValueError("entities are what blows up or reads other files")

    def close(self) -> list[dict[str, str]]:
        return self._found


def _responses(content: bytes, place: str) -> Iterator[tuple[str, Item]]:
    """Name, ETag and content of each file that an answer tells of."""
    try:
        found = ET.fromstring(content, ET.XMLParser(target=_Files()))  # noqa: S314 - declares nothing, bounded
    except (ET.ParseError, ValueError, LookupError):
        raise ChatprocError("the answer is no XML that can be read", where=place) from None
    for told in found:
        name = unquote(told.get(_HREF, "")).rpartition("/")[2]
        if _NAME.fullmatch(name):
            yield name, Item(_strong(told.get(_ETAG, "")), told.get(_DATA, ""))


def _strong(etag: str) -> str:
    """An ETag on which a condition can rest; a weak one never matches (RFC 9110)."""
    return etag if re.fullmatch(r'"[\x21\x23-\x7e]{0,500}"', etag) else ""
