"""One request: what was asked, in which language, and the ways to answer it.

It reads forms of the console's own pages alone, and leads to the console's own paths alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from starlette.responses import HTMLResponse, RedirectResponse

from chatproc.config import load_config
from chatproc.console import shown
from chatproc.console.texts import LANGUAGES, catalogue, preferred, speaker
from chatproc.errors import ChatprocError

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from chatproc.config import Config
    from chatproc.console.security import Gate
    from chatproc.console.texts import Say
    from chatproc.console.works import Works

LANGUAGE_COOKIE = "chatproc_console_language"

_LARGEST_FORM = 4 * 1024 * 1024
_OWN_PATH = re.compile(r"/(?![/\\])[\x21-\x7e]*")


@dataclass(frozen=True)
class Console:
    """What all requests share.

    Args:
        config_file: Read again for each request.
        gate: Has the token of forms.
        works: What runs in the background.
    """

    config_file: Path
    gate: Gate
    works: Works


class NotAFormError(Exception):
    """A request that no form of the console makes."""


class Visit:
    """One request.

    Args:
        console: What all requests share.
        request: As it came.
        form: Its fields; a name may come several times.
    """

    def __init__(self, console: Console, request: Request, form: list[tuple[str, str]]) -> None:
        """Find out the language."""
        self.console = console
        self._request = request
        self._form = form
        wanted = request.cookies.get(LANGUAGE_COOKIE)
        accepted = request.headers.get("accept-language", "")
        self.language = wanted if wanted in LANGUAGES else preferred(accepted)

    @classmethod
    async def read(cls, console: Console, request: Request) -> Visit:
        """Read a request with its form.

        Args:
            console: What all requests share.
            request: As it came.

        Raises:
            NotAFormError: It posts something else than a form of this process.
        """
        form: list[tuple[str, str]] = []
        if request.method == "POST":
            form = parse_qsl(await _body(request), keep_blank_values=True)
            if not console.gate.is_own_form(dict(form).get("form_token", "")):
                raise NotAFormError
        return cls(console, request, form)

    @property
    def config(self) -> Config:
        """The configuration as the file says it now."""
        return load_config(self.console.config_file)

    @property
    def say(self) -> Say:
        """Says the console's texts in the visitor's language."""
        return speaker(self.language)

    @property
    def path(self) -> str:
        """Path and query."""
        url = self._request.url
        return f"{url.path}?{url.query}" if url.query else url.path

    def place(self, name: str) -> str:
        """A part of the path.

        Args:
            name: As the route calls it.
        """
        return str(self._request.path_params[name])

    def asked(self, name: str) -> str:
        """A field of the query, `""` when it is not there.

        Args:
            name: Of the field.
        """
        return self._request.query_params.get(name, "").strip()

    def asked_exactly(self, name: str) -> str:
        """A field of the query with the white space around it, as a key or an id may have it.

        Args:
            name: Of the field.
        """
        return self._request.query_params.get(name, "")

    def all_asked(self, name: str) -> list[str]:
        """Every value of a field of the query.

        Args:
            name: Of the field.
        """
        return [value for value in self._request.query_params.getlist(name) if value]

    def field(self, name: str) -> str:
        """A field of the form, `""` when it is not there.

        Args:
            name: Of the field.
        """
        return dict(self._form).get(name, "")

    def show(self, template: str, *, status: int = 200, **values: Any) -> Response:  # noqa: ANN401 - of the page
        """A page.

        Args:
            template: Its file.
            status: Of the answer.
            values: What the page shows.
        """
        said = self.asked("said")
        common = {
            "say": self.say,
            "language": self.language,
            "languages": LANGUAGES,
            "here": self.path,
            "section": self._request.url.path.split("/")[1],
            "form_token": self.console.gate.form_token,
            "said": said if f"said.{said}" in catalogue(self.language) else "",
        }
        return HTMLResponse(shown.page(template, {**common, **values}), status)

    def fault(self, error: Exception, *, status: int = 400) -> Response:
        """A page that says what could not be done, where, and what mends it.

        Args:
            error: What stopped it.
            status: Of the answer.
        """
        return self.show("fault.html", status=status, error=told(error))

    def go(self, path: str, said: str = "") -> Response:
        """On to another page, after something was done.

        Args:
            path: One of the console's own; any other leads to the start.
            said: Name of the text that tells what was done.
        """
        path = path if _OWN_PATH.fullmatch(path) else "/"
        if said:
            path = re.sub(r"(?<=[?&])said=\w*&?", "", path).rstrip("?&")
            path += f"{'&' if '?' in path else '?'}said={said}"
        return RedirectResponse(path, 303)


def number_of(text: str) -> int | None:
    """A number as a form or an address says it, `None` where it says none.

    Args:
        text: From whoever wrote the address.

    Example:
        >>> number_of("12"), number_of("-1"), number_of("9" * 20)
        (12, None, None)
    """
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None


def told(error: Exception) -> ChatprocError:
    """An error in the three lines of the package.

    Args:
        error: Of the package or of the system.
    """
    if isinstance(error, ChatprocError):
        return error
    where = getattr(error, "filename", None)
    return ChatprocError(getattr(error, "strerror", None) or type(error).__name__, where=where and str(where))


async def _body(request: Request) -> str:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _LARGEST_FORM:
            raise NotAFormError
    try:
        return body.decode("ascii")
    except UnicodeDecodeError:
        raise NotAFormError from None
