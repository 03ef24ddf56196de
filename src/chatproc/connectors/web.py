"""Asking a JSON API over HTTP: one request at a time, the answer bounded, each failure with its class.

A token goes to the configured origin only: no redirect is followed, no proxy or setting of the environment
is used, certificates are always checked. What a server says is hostile input: it enters an error cut and
without control characters.
"""

from __future__ import annotations

import json
import ssl
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from chatproc.connectors.base import SyncError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from chatproc.connectors.base import FaultClass

__all__ = ["AnswerError", "Web"]

LARGEST_ANSWER = 64 << 20
_SILENCE = 120.0
_CONNECT = 20.0
_SHOWN = 200
_OK = 200
_FAULTS: dict[int, FaultClass] = {
    401: "auth",
    403: "auth",
    407: "auth",
    408: "server",
    413: "too_large",
    429: "rate",
}


class AnswerError(SyncError):
    """The server answered a request with an error.

    Attributes:
        status: The HTTP status.
        said: The answer's JSON object; `{}` when it is none.
    """

    def __init__(self, status: int, said: dict[str, Any], *, where: str, retry_after: float | None) -> None:
        """Say it with the words that the server found."""
        words = next(
            (said[name] for name in ("error", "message", "errmsg") if isinstance(said.get(name), str)), ""
        )
        super().__init__(
            f"the server answered {status}" + (f": {_shown(words)}" if words else ""),
            fault=_FAULTS.get(status, "server" if status >= 500 else "bad_data"),  # noqa: PLR2004 - HTTP
            where=where,
            retry_after=retry_after,
        )
        self.status = status
        self.said = said


class Web:
    """A server; use as a context.

    Example:
        >>> async with Web("http://127.0.0.1:8008", token="…") as web:  # doctest: +SKIP
        ...     await web.get("/_matrix/client/versions")
    """

    def __init__(self, base_url: str, *, token: str | None = None) -> None:
        """Nothing is sent yet.

        Raises:
            SyncError: No header can carry the token.
        """
        import httpx2

        if token is not None and not (token.isascii() and token.isprintable()):
            what = "the token has characters that cannot be sent"
            raise SyncError(what, fault="auth", hint="copy it again: one line of plain text")
        self._base_url = base_url
        self._place = urlsplit(base_url).netloc
        headers = {"User-Agent": "chatproc", "Accept": "application/json"}
        self._http = httpx2.AsyncClient(
            trust_env=False,
            follow_redirects=False,
            timeout=httpx2.Timeout(_SILENCE, connect=_CONNECT),
            headers={**headers, **({"Authorization": f"Bearer {token}"} if token else {})},
        )

    async def __aenter__(self) -> Self:
        """The server itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection."""
        await self._http.aclose()

    async def get(
        self, path: str, params: Mapping[str, str] | None = None, *, read: Callable[[bytes], Any] = json.loads
    ) -> Any:  # noqa: ANN401 - any JSON
        """The answer to GET.

        Args:
            path: What follows the base URL, quoted.
            params: The query; values that are secret must not be among them.
            read: Makes a value of the content; a `ValueError` says that it is none.

        Raises:
            AnswerError: The server answered with an error.
            SyncError: There is no answer, or it is no JSON, or too large.
        """
        return await self._ask("GET", path, read, params=params)

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        """The answer to POST of a JSON object; raises what `get` raises."""
        return await self._ask("POST", path, json.loads, json=body)

    async def _ask(self, method: str, path: str, read: Callable[[bytes], Any], **more: Any) -> Any:  # noqa: ANN401 - any JSON
        import httpx2

        where = f"{self._place}{path.partition('?')[0]}"
        try:
            async with self._http.stream(method, self._base_url + path, **more) as answer:
                content = await _content(answer, where)
        except httpx2.TimeoutException as error:
            raise SyncError("no answer in time", fault="network", where=where) from error
        except httpx2.HTTPError as error:
            raise _no_connection(error, where) from error
        if answer.status_code != _OK:
            found = _error_object(content)
            wait = _retry_after(answer.headers, found)
            raise AnswerError(answer.status_code, found, where=where, retry_after=wait)
        try:
            said = read(content)
        except (ValueError, RecursionError):
            raise SyncError("the answer is no JSON", fault="bad_data", where=where) from None
        if said is None:
            raise SyncError("the answer is no JSON", fault="bad_data", where=where)
        return said


def _error_object(content: bytes) -> dict[str, Any]:
    """What an error says: its object; some servers give a bare text."""
    try:
        said = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    if isinstance(said, str):
        return {"error": said}
    return said if isinstance(said, dict) else {}


async def _content(answer: Any, where: str) -> bytes:  # noqa: ANN401 - httpx2 is imported where it is used
    content = bytearray()
    async for chunk in answer.aiter_bytes():
        content += chunk
        if len(content) > LARGEST_ANSWER:
            what = f"an answer of more than {LARGEST_ANSWER >> 20} MB"
            raise SyncError(what, fault="too_large", where=where)
    return bytes(content)


def _no_connection(error: Exception, where: str) -> SyncError:
    """The sentence for a connection that failed, from the cause nearest to the wire."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            what = f"the server's certificate is refused: {cause.verify_message}"
            return SyncError(
                what, fault="network", where=where, hint="the host must be the name in the certificate"
            )
        cause = cause.__cause__ or cause.__context__
    return SyncError(
        f"no connection: {_shown(str(error)) or type(error).__name__}", fault="network", where=where
    )


def _retry_after(headers: Mapping[str, str], said: dict[str, Any]) -> float | None:
    """Seconds to wait, as the header or Matrix's own field says it."""
    header = headers.get("retry-after")
    try:
        if header is None:
            return max(0.0, float(said["retry_after_ms"]) / 1000)
        return max(0.0, float(header) if _is_number(header) else _until(header, headers))
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _until(date: str, headers: Mapping[str, str]) -> float:
    """Seconds to a date by the clock of the server that gave it, as far as it tells its time."""
    now = _moment(headers["date"]) if "date" in headers else datetime.now(UTC)
    return (_moment(date) - now).total_seconds()


def _moment(date: str) -> datetime:
    moment = parsedate_to_datetime(date)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text[:_SHOWN]).strip()
