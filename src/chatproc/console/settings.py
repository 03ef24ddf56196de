"""The page of the configuration: its file with masks for keys, checked before it is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chatproc.console.shown import diff_of
from chatproc.console.visit import told
from chatproc.edits import read_config_text, save_config
from chatproc.errors import ChatprocError, FileChangedError

if TYPE_CHECKING:
    from starlette.responses import Response

    from chatproc.console.visit import Visit
    from chatproc.edits import EditedFile


def edited(visit: Visit) -> Response:
    """The configuration in a field; also one that cannot be used, so that it can be mended here.

    Args:
        visit: The request.
    """
    file = read_config_text(visit.console.config_file)
    try:
        visit.config  # noqa: B018 - to see whether it can be used
    except ChatprocError as error:
        return _page(visit, file, file.text, error)
    return _page(visit, file, file.text, None)


def save(visit: Visit) -> Response:
    """Save the configuration, or show what is wrong beside the text that was sent.

    Args:
        visit: The request.
    """
    text = visit.field("text").replace("\r\n", "\n")
    try:
        save_config(visit.console.config_file, text, expected_sha256=visit.field("sha256"))
    except (ChatprocError, OSError) as error:
        return _page(visit, read_config_text(visit.console.config_file), text, error, status=400)
    return visit.go("/settings", "settings_saved")


def _page(
    visit: Visit, file: EditedFile, text: str, error: Exception | None, *, status: int = 200
) -> Response:
    is_conflict = isinstance(error, FileChangedError)
    return visit.show(
        "settings.html",
        status=status,
        file=file,
        text=text,
        error=None if error is None else told(error),
        diff=diff_of(file.text, text) if is_conflict else [],
        # One who saves without having seen the file as it is now is told, not obeyed.
        sha256=file.sha256 if is_conflict or not visit.field("sha256") else visit.field("sha256"),
    )
