"""Mail folders over IMAP: new mails first and oldest of them first, then the backfill, newest first.

The cursor has for each folder its UIDVALIDITY, the last UID that was read and the UID from which the backfill
goes on downwards, so a run that ends anywhere leaves no hole. When UIDVALIDITY changes, the folder is read
again from the first sync's day on; a mail is known by its Message-ID, so that makes no second one. What was
expunged meanwhile is gone; a mail that cannot be read goes into the quarantine and stops nothing.
"""

from __future__ import annotations

import asyncio
import copy
import json
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, cast
from zoneinfo import ZoneInfo

from chatproc.config import ImapConnection
from chatproc.connectors.base import Page, SyncError, Toolkit
from chatproc.connectors.imapwire import LARGEST_MAIL, RefusedError, Wire, uid_set

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from chatproc.connectors.base import Pull
    from chatproc.connectors.imapwire import Mail

__all__ = ["TOOLKIT"]

_MAILS_A_PAGE = 100
_BYTES_A_PAGE = 8 << 20
_KEPT_OF_UNREADABLE = 1 << 20
_FOLDERS_SHOWN = 30
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


async def _pull(ask: Pull) -> AsyncIterator[Page]:
    config = cast("ImapConnection", ask.config)
    password = ask.secret()
    if password is None:
        raise SyncError(
            "no password for the mail account",
            fault="auth",
            where=f"[[connections]] imap, id = {config.id!r}",
            hint="secret_file names a file with the password, secret_env an environment variable",
        )
    await ask.budget.request()
    wire = await Wire.connect(config.host, config.port, tls=config.tls, ca_file=config.ca_file)
    try:
        await wire.log_in(config.user, password)
        async for page in _Run(ask, config, wire).pages():
            yield page
        await wire.log_out()
    except RefusedError as no:
        raise SyncError(f"the server said no: {no}", fault=no.fault or "server", where=wire.place) from None
    finally:
        wire.close()


class _Run:
    """One walk through all folders of a connection."""

    def __init__(self, ask: Pull, config: ImapConnection, wire: Wire) -> None:
        self._budget = ask.budget
        self._folders = config.folders
        self._wire = wire
        self._line_of = _reader(ask, config)
        blank = {"since": ask.since, "folders": {}, "refused": []}
        self._cursor: dict[str, Any] = {**blank, **copy.deepcopy(ask.cursor)}
        self._opened: str | None = None
        self._refused: dict[str, str] = {}

    async def pages(self) -> AsyncIterator[Page]:
        """All that there is to read, then which folders could not be opened."""
        usable = []
        for name in self._folders:
            if await self._open(name):
                usable.append(name)
                async for lines in self._new(name):
                    yield self._page(lines, more=True)
        for name in usable:
            if self._place(name)["backfill_uid"] and await self._open(name):
                async for lines in self._backfill(name):
                    yield self._page(lines, more=True)
        yield self._page(await self._tell_refused(), more=False)

    async def _tell_refused(self) -> list[bytes]:
        """A line for each folder that cannot be opened, once; they stop no other folder."""
        told = set(self._cursor["refused"])
        self._cursor["refused"] = sorted(self._refused)
        fresh = {name: why for name, why in self._refused.items() if name not in told}
        if not fresh:
            return []
        names = (await self._wire.folders())[:_FOLDERS_SHOWN]
        return [
            _told(folder=name, why=f"it cannot be opened: {why}", there_are=names)
            for name, why in fresh.items()
        ]

    def _page(self, lines: list[bytes], *, more: bool) -> Page:
        return Page(lines, copy.deepcopy(self._cursor), more)

    def _place(self, name: str) -> dict[str, int]:
        place: dict[str, int] = self._cursor["folders"][name]
        return place

    async def _open(self, name: str) -> bool:
        """Open a folder; of one that is new here, or was made anew, all is backfill."""
        if name == self._opened:
            return True
        try:
            folder = await self._wire.examine(name)
        except RefusedError as no:
            if no.fault is not None:
                raise
            self._refused[name] = str(no)
            self._opened = None
            return False
        self._opened = name
        known = self._cursor["folders"].get(name)
        # UIDNEXT never falls by itself: some servers restore a mailbox under its old UIDVALIDITY.
        if (
            known is None
            or known["uidvalidity"] != folder.uidvalidity
            or 0 < folder.uidnext <= known["last_uid"]
        ):
            newest = folder.uidnext - 1 if folder.uidnext else max(await self._wire.search("*"), default=0)
            self._cursor["folders"][name] = {
                "uidvalidity": folder.uidvalidity,
                "last_uid": newest,
                "backfill_uid": newest,
            }
        return True

    async def _new(self, name: str) -> AsyncIterator[list[bytes]]:
        """What came since, oldest first."""
        place = self._place(name)
        last = place["last_uid"]
        # `n:*` means the last mail, whatever its UID, where there is none from n on.
        uids = [uid for uid in await self._wire.search(f"UID {last + 1}:*") if uid > last]
        async for group, lines in self._read(name, uids):
            place["last_uid"] = group[-1]
            yield lines

    async def _backfill(self, name: str) -> AsyncIterator[list[bytes]]:
        """What was there before, newest first."""
        place = self._place(name)
        top = place["backfill_uid"]
        since = _day(self._cursor["since"])
        uids = [uid for uid in await self._wire.search(f"UID 1:{top} SINCE {since}") if uid <= top]
        async for group, lines in self._read(name, uids[::-1]):
            place["backfill_uid"] = group[-1] - 1
            yield lines
        place["backfill_uid"] = 0

    async def _read(self, name: str, uids: Sequence[int]) -> AsyncIterator[tuple[list[int], list[bytes]]]:
        """Mails in the order of `uids`, as many at once as budget and size allow."""
        at = 0
        while at < len(uids):
            asked = uids[at : at + self._budget.page_size(_MAILS_A_PAGE)]
            at += len(asked)
            sizes = await self._wire.sizes(asked)
            await self._check_gone(set(asked) - sizes.keys())
            for group in _groups(asked, sizes):
                await self._budget.request()
                yield group, await self._lines(name, [uid for uid in group if uid in sizes], sizes)

    async def _lines(self, name: str, uids: list[int], sizes: dict[int, int]) -> list[bytes]:
        """The events of some mails; of one that cannot be had, that there is one."""
        if not uids:
            return []
        if sizes[uids[0]] > LARGEST_MAIL:
            why = f"larger than {LARGEST_MAIL >> 20} MB"
            return [_told(folder=name, uid=uids[0], why=why)]
        try:
            mails = await self._wire.mails(uids)
        except RefusedError as no:
            if no.fault is not None:
                raise
            if len(uids) == 1:
                return [_told(folder=name, uid=uids[0], why=f"the server does not give it: {no}")]
            return [line for uid in uids for line in await self._lines(name, [uid], sizes)]
        await self._check_gone(set(uids) - mails.keys())
        found = [mails[uid] for uid in uids if uid in mails]
        return await asyncio.to_thread(lambda: [self._line_of(name, mail) for mail in found])

    async def _check_gone(self, missing: set[int]) -> None:
        """A mail that an answer left out must have been expunged, else it would be lost."""
        if missing and (still := await self._wire.search(f"UID {uid_set(missing)}")):
            what = f"the server left out {len(still)} mails that it has"
            raise SyncError(what, fault="server", where=self._wire.place)


def _groups(uids: Sequence[int], sizes: dict[int, int]) -> Iterator[list[int]]:
    """Neighbours that are small enough together, or one alone."""
    group: list[int] = []
    total = 0
    for uid in uids:
        size = sizes.get(uid, 0)
        if group and total + size > _BYTES_A_PAGE:
            yield group
            group, total = [], 0
        group.append(uid)
        total += size
    if group:
        yield group


def _reader(ask: Pull, config: ImapConnection) -> Callable[[str, Mail], bytes]:
    """What makes the event line of a mail in a folder."""
    from chatproc.importers.events import event_document
    from chatproc.importers.mail import attachment_store, mail_message

    account, zone = config.account_id or config.user, ZoneInfo(ask.timezone)
    folder = config.attachments_dir
    save = attachment_store(folder, ask.archive_root) if folder else None

    def line_of(name: str, mail: Mail) -> bytes:
        try:
            message = mail_message(
                mail.raw,
                account=account,
                zone=zone,
                received_at=_arrival(mail.arrived),
                save=save,
                max_body_chars=config.max_body_chars,
            ).message
        except OSError as error:
            what = f"an attachment cannot be written: {error.strerror}"
            raise SyncError(what, fault="server", where=str(folder)) from error
        except Exception:  # noqa: BLE001 - whatever a hostile mail breaks, it stops no other mail
            return mail.raw[:_KEPT_OF_UNREADABLE]
        if message.sent_at < 0:
            return mail.raw[:_KEPT_OF_UNREADABLE]
        message.source["folder"] = name
        return event_document(message, "connect/imap")[0].encode()

    return line_of


def _told(**facts: object) -> bytes:
    """What stands in the quarantine for a mail or a folder that could not be had."""
    return json.dumps(facts, ensure_ascii=False).encode()


def _arrival(written: bytes) -> int | None:
    """Milliseconds of an INTERNALDATE."""
    try:
        return round(parsedate_to_datetime(written.decode("ascii")).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def _day(since: int) -> str:
    """A day for SEARCH SINCE, which knows no zones: the one before, so that none is missed."""
    day = datetime.fromtimestamp(since / 1000, UTC) - timedelta(days=1)
    return f"{day.day}-{_MONTHS[day.month - 1]}-{day.year}"


TOOLKIT = Toolkit("imap", 300, ImapConnection, _pull)
