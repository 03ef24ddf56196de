"""chatproc: group chats → to-dos that can be trusted, each once, with the message that proves it.

Names are loaded when they are first used, so that importing the package stays fast and pulls in no network
library.

Example:
    >>> from chatproc import load_config, run_round
    >>> run_round(load_config("config/processor.toml"))  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from chatproc import _core
from chatproc.errors import (
    ChatprocError,
    ConfigError,
    CredentialError,
    EvidenceError,
    FileChangedError,
    ModelError,
    StateLockedError,
    StoreVersionError,
    TaskConflict,
)

if TYPE_CHECKING:
    from chatproc.config import Config, load_config
    from chatproc.core import plan_events, resolve_time
    from chatproc.edits import EditedFile, read_config_text, read_rules_text, save_config, save_rules
    from chatproc.evidence import EvidencePage, read_evidence
    from chatproc.excerpt import Excerpt, read_excerpts
    from chatproc.loop.running import run_loop
    from chatproc.pipeline import arun_round, export, preview, run_round
    from chatproc.publishing import publish
    from chatproc.refused import discard_quarantined, quarantine, quarantined_line, retry_quarantined
    from chatproc.results import (
        Backup,
        ConnectionStates,
        Conversations,
        Coverage,
        ExportReport,
        LoopReport,
        Plan,
        Preview,
        Progress,
        PublishReport,
        QuarantinedLine,
        ResolvedTime,
        RoundReport,
        Status,
        SyncReport,
        Task,
        TaskEvent,
        TaskPage,
        TaskRevision,
        Verdict,
        Way,
    )
    from chatproc.schedule import (
        RunningLoop,
        connections,
        nudge,
        plan_run,
        start_loop,
        sync_connections,
    )
    from chatproc.store import backup, coverage, explain, list_conversations, status, verify
    from chatproc.tasks import get_task, list_tasks, task_history, update_task_priority, update_task_status

__version__: str = _core.__version__

_HOMES = {
    "chatproc.config": ("Config", "load_config"),
    "chatproc.core": ("plan_events", "resolve_time"),
    "chatproc.edits": ("EditedFile", "read_config_text", "read_rules_text", "save_config", "save_rules"),
    "chatproc.evidence": ("EvidencePage", "read_evidence"),
    "chatproc.excerpt": ("Excerpt", "read_excerpts"),
    "chatproc.pipeline": ("arun_round", "export", "preview", "run_round"),
    "chatproc.publishing": ("publish",),
    "chatproc.refused": ("discard_quarantined", "quarantine", "quarantined_line", "retry_quarantined"),
    "chatproc.results": (
        "Backup",
        "ConnectionStates",
        "Conversations",
        "Coverage",
        "ExportReport",
        "LoopReport",
        "Plan",
        "Preview",
        "Progress",
        "PublishReport",
        "QuarantinedLine",
        "ResolvedTime",
        "RoundReport",
        "Status",
        "SyncReport",
        "Task",
        "TaskEvent",
        "TaskPage",
        "TaskRevision",
        "Verdict",
        "Way",
    ),
    "chatproc.loop.running": ("run_loop",),
    "chatproc.schedule": (
        "RunningLoop",
        "connections",
        "nudge",
        "plan_run",
        "start_loop",
        "sync_connections",
    ),
    "chatproc.store": ("backup", "coverage", "explain", "list_conversations", "status", "verify"),
    "chatproc.tasks": (
        "get_task",
        "list_tasks",
        "task_history",
        "update_task_priority",
        "update_task_status",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Backup",
    "ChatprocError",
    "Config",
    "ConfigError",
    "ConnectionStates",
    "Conversations",
    "Coverage",
    "CredentialError",
    "EditedFile",
    "EvidenceError",
    "EvidencePage",
    "Excerpt",
    "ExportReport",
    "FileChangedError",
    "LoopReport",
    "ModelError",
    "Plan",
    "Preview",
    "Progress",
    "PublishReport",
    "QuarantinedLine",
    "ResolvedTime",
    "RoundReport",
    "RunningLoop",
    "StateLockedError",
    "Status",
    "StoreVersionError",
    "SyncReport",
    "Task",
    "TaskConflict",
    "TaskEvent",
    "TaskPage",
    "TaskRevision",
    "Verdict",
    "Way",
    "__version__",
    "arun_round",
    "backup",
    "connections",
    "coverage",
    "discard_quarantined",
    "explain",
    "export",
    "get_task",
    "list_conversations",
    "list_tasks",
    "load_config",
    "nudge",
    "plan_events",
    "plan_run",
    "preview",
    "publish",
    "quarantine",
    "quarantined_line",
    "read_config_text",
    "read_evidence",
    "read_excerpts",
    "read_rules_text",
    "resolve_time",
    "retry_quarantined",
    "run_loop",
    "run_round",
    "save_config",
    "save_rules",
    "start_loop",
    "status",
    "sync_connections",
    "task_history",
    "update_task_priority",
    "update_task_status",
    "verify",
]

if _core.DEBUG_BUILD:
    warnings.warn(
        "chatproc was built without optimisation; its speed means nothing", RuntimeWarning, stacklevel=2
    )


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute is anything
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return __all__
