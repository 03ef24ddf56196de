"""A browser without a screen: cookies, links and forms over real HTTP, with the headers that one sends."""

from __future__ import annotations

import http.client
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode, urlsplit

VOID = {"meta", "link", "input", "br", "progress"}


@dataclass
class Form:
    """A form as a page holds it."""

    method: str
    action: str
    fields: list[tuple[str, str]] = field(default_factory=list)
    buttons: list[tuple[str, str]] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.forms: list[Form] = []
        self.open: list[str] = []
        self.faults: list[str] = []
        self.pieces: list[str] = []
        self._select = ""
        self._area = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.elements.append((tag, known))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "form":
            self.forms.append(Form(known.get("method") or "get", known.get("action") or ""))
        if not self.forms:
            return
        form, name = self.forms[-1], known.get("name") or ""
        if tag == "input" and (known.get("type") != "checkbox" or "checked" in known):
            form.fields.append((name, known.get("value") or ""))
        elif tag == "button":
            form.buttons.append((name, known.get("value") or ""))
        elif tag == "select":
            self._select = name
        elif tag == "textarea":
            self._area = name
            form.fields.append((name, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in {"svg", "path"} or tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}>")
        if tag == "textarea":
            name, text = self.forms[-1].fields[-1]
            self.forms[-1].fields[-1] = (name, text.removeprefix("\n"))
            self._area = ""

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)
        if self._area:
            name, text = self.forms[-1].fields[-1]
            self.forms[-1].fields[-1] = (name, text + data)


@dataclass
class Answered:
    """One answer, read as a browser reads it."""

    status: int
    headers: dict[str, str]
    body: str
    path: str

    def __post_init__(self) -> None:
        reader = _Reader()
        reader.feed(self.body)
        self.elements = reader.elements
        self.forms = reader.forms
        self.faults = reader.faults + reader.open
        self.text = "".join(reader.pieces)

    @property
    def links(self) -> list[str]:
        return [known["href"] or "" for tag, known in self.elements if tag == "a"]

    def form(self, action: str) -> Form:
        return next(form for form in self.forms if form.action == action)


class Browser:
    """Asks one console. `opened` follows the address with the token."""

    def __init__(self, port: int, language: str = "en") -> None:
        self.port = port
        self.language = language
        self.cookies: dict[str, str] = {}

    def opened(self, address: str) -> Browser:
        place = urlsplit(address)
        assert self.get(f"{place.path}?{place.query}").status == 200
        return self

    def ask(
        self, method: str, path: str, body: str | None = None, headers: dict[str, str] | None = None
    ) -> Answered:
        """One request as it stands; a header given as `""` is left out."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {
            "Host": f"127.0.0.1:{self.port}",
            "Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()),
            "Accept-Language": self.language,
            **(headers or {}),
        }
        connection.request(method, path, body, {name: value for name, value in sent.items() if value})
        answer = connection.getresponse()
        text = answer.read().decode()
        for name, value in answer.getheaders():
            if name.lower() == "set-cookie":
                key, _, rest = value.partition("=")
                self.cookies[key] = rest.partition(";")[0]
        known = {name.lower(): value for name, value in answer.getheaders()}
        connection.close()
        return Answered(answer.status, known, text, path)

    def get(self, path: str) -> Answered:
        """A page, redirections followed."""
        answer = self.ask("GET", path, headers={"Sec-Fetch-Site": "same-origin"})
        return self.get(answer.headers["location"]) if answer.status == 303 else answer

    def post(self, path: str, fields: list[tuple[str, str]], **headers: str) -> Answered:
        """A form sent as it stands, no redirection followed."""
        sent = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Origin": f"http://127.0.0.1:{self.port}",
            "Sec-Fetch-Site": "same-origin",
        } | {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("POST", path, urlencode(fields), sent)

    def submit(self, form: Form, **changed: Any) -> Answered:  # noqa: ANN401 - texts
        """Send a form with some fields filled in, and follow where it leads."""
        fields = [(name, changed.pop(name, value)) for name, value in form.fields]
        fields += list(changed.items())
        if form.method == "get":
            return self.get(f"{form.action}?{urlencode(fields)}")
        # A browser sends line ends as CRLF.
        answer = self.post(form.action, [(name, value.replace("\n", "\r\n")) for name, value in fields])
        return self.get(answer.headers["location"]) if answer.status == 303 else answer
