"""`chatproc import`: turns exports of chat programs into batches of `chatproc.event/1`.

Adding a format is one module with a `Format` and one line in `FORMATS`. Never touches the store: a batch
that is written here is read like any other.
"""

from __future__ import annotations

import errno
import os
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from chatproc.errors import ConfigError
from chatproc.importers.base import Reading
from chatproc.importers.batch import write_batch
from chatproc.importers.chatlab import CHATLAB
from chatproc.importers.discord import DISCORD
from chatproc.importers.feishu import FEISHU
from chatproc.importers.line import LINE
from chatproc.importers.mailboxes import ATTACHMENTS, EML, MBOX
from chatproc.importers.matrix import MATRIX
from chatproc.importers.qq import QCE
from chatproc.importers.qq_txt import QQ_TXT
from chatproc.importers.report import ImportReport
from chatproc.importers.slack import SLACK
from chatproc.importers.telegram import TELEGRAM
from chatproc.importers.wechat import CHATLOG, WEFLOW
from chatproc.importers.wechat_csv import MEMOTRACE
from chatproc.importers.whatsapp import WHATSAPP
from chatproc.whole import clear_abandoned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from chatproc.importers.base import DateOrder, Format, Source

__all__ = ["FORMATS", "ImportReport", "import_chats"]

AUTO = "auto"
# `tmp` is a Maildir's folder of mails that are still being delivered.
_SENT_FILES = frozenset(
    {
        "audio",
        "audios",
        "chats",
        "contacts",
        "files",
        "images",
        "media",
        "photos",
        "profile_pictures",
        "resources",
        "round_video_messages",
        "stickers",
        "stories",
        "tmp",
        "video",
        "video_files",
        "videos",
        "voice",
        "voice_messages",
    }
)
FORMATS = {
    form.name: form
    for form in (
        QCE,
        QQ_TXT,
        WEFLOW,
        MEMOTRACE,
        CHATLOG,
        TELEGRAM,
        WHATSAPP,
        LINE,
        SLACK,
        DISCORD,
        FEISHU,
        MATRIX,
        CHATLAB,
        MBOX,
        EML,
    )
}


def import_chats(  # noqa: PLR0913 - each a setting of the command
    format_name: str,
    paths: Iterable[str | Path],
    *,
    account: str = "",
    out: str | Path = "data/import",
    timezone: str = "Asia/Shanghai",
    complete: bool = False,
    date_order: DateOrder | None = None,
    archive_root: str | Path | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> ImportReport:
    """Turn exports into batch files, one a source.

    Args:
        format_name: A key of `FORMATS`, or `auto`: what each path is, told by its content.
        paths: Files or folders that hold exports of that format.
        account: The collecting account; `""`: what the file says, else none.
        out: The folder for the batches; made when it is not there.
        timezone: IANA name of the zone for times that the export writes without one.
        complete: The exports hold whole conversations, so neighbours in them are neighbours.
        date_order: Order of day, month and year where a text export does not show it.
        archive_root: `input.archive_root`. Attachment paths are relative to it where the export lies under
            it, else to the export's own folder.
        progress: Told the export's name, bytes done and bytes in all.

    Returns:
        What was written, found, missing, mended and not understood.

    Raises:
        ConfigError: An unknown format or zone, a path without an export of the format, or none that can be
            read; where others can, one that cannot is listed in the report.
        OSError: A file cannot be read or written; a missing path is `FileNotFoundError`.

    Example:
        >>> report = import_chats("telegram", ["export/result.json"])  # doctest: +SKIP
        >>> report.messages, report.not_understood  # doctest: +SKIP
        (1520, ())
    """
    if format_name not in (AUTO, *FORMATS):
        raise ConfigError(
            f"unknown import format {format_name!r}",
            hint=f"one of: {', '.join([AUTO, *sorted(FORMATS)])}",
        )
    try:
        zone = ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(f"unknown time zone {timezone!r}", hint="an IANA name: Asia/Shanghai") from error
    folder = Path(out)
    reading = Reading(
        account=account,
        timezone=zone,
        complete=complete,
        date_order=date_order,
        archive_root=Path(archive_root) if archive_root is not None else None,
        progress=progress,
        out=folder,
    )
    clear_abandoned(folder)
    sources = [found for path in map(Path, paths) for found in _sources(format_name, path, reading)]
    refused = []
    for form, source in sources:
        try:
            write_batch(form, source, reading, folder)
        except ConfigError as error:
            refused.append(error)
            hint = f"; {error.hint}" if error.hint else ""
            reading.not_understand(source.name, 0, "", f"not imported: {error.what}{hint}")
    if refused and not reading.files:
        raise refused[0]
    return reading.report()


def _sources(format_name: str, path: Path, reading: Reading) -> list[tuple[Format, Source]]:
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    if format_name != AUTO:
        return [(FORMATS[format_name], source) for source in FORMATS[format_name].find(path)]
    found = list(_search(path, set(), reading))
    if not found:
        looked_for = "; ".join(f"{form.name}: {form.looks_for}" for form in FORMATS.values())
        raise ConfigError(
            "no export of a known format here",
            where=str(path),
            hint=f"looked for {looked_for}",
        )
    return found


def _search(path: Path, found: set[Path], reading: Reading) -> Iterator[tuple[Format, Source]]:
    """What a path is by its content, and what else lies in it; `found`: files of exports, once is enough."""
    if path in found:
        return
    forms = [form for form in FORMATS.values() if form.recognizes(path)]
    if len(forms) == 1:
        for source in forms[0].find(path):
            if not found.issuperset(source.files):
                found.update(source.files)
                yield forms[0], source
    if path.is_dir():
        for inner in sorted(path.iterdir()):
            if not _is_passed_over(inner, beside_exports=bool(forms)):
                yield from _search(inner, found, reading)
    elif len(forms) > 1:
        names = ", ".join(form.name for form in forms)
        raise ConfigError(
            f"this may be each of {names}",
            where=str(path),
            hint=f"say which it is: chatproc import {forms[0].name} …",
        )
    elif not forms and path.suffix.lower() == ".zip":
        reading.not_understand(path.name, 0, "", "not imported: an archive, and not one of Slack; unpack it")


def _is_passed_over(path: Path, *, beside_exports: bool) -> bool:
    """Hidden things, links, media, and the folders in which exports hold what was sent in their chats."""
    if path.name.startswith(".") or path.is_symlink() or path.name == ATTACHMENTS:
        return True
    if path.is_dir():
        return beside_exports and (path.name.lower() in _SENT_FILES or path.name.endswith("_Files"))
    media = (guess_type(path.name)[0] or "").startswith(("image/", "video/", "audio/"))
    return media or not path.is_file()
