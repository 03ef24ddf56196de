"""How long an import takes and how much memory, on exports made for it; each in a process of its own.

    python benches/imports.py --mb 200
    python benches/imports.py --mb 200 --beside VENV/bin/python    # one that has chat-miner

chat-miner (PyPI) reads Telegram's JSON for statistics: texts, times and authors, written as JSON. It stands
beside the import of the same file; it keeps no keys, replies, edits, files or links.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SENTENCE = "请 大家 周五 前 把 报告 交到 302 办公室 谢谢 收到 好的 meeting noon see you there ok 😀"
WORDS = SENTENCE.split()
NAMES = ["林老师", "陈雨桐", "Alex", "王敏", "Müller"]


def say(chance: random.Random) -> str:
    """Some words."""
    return " ".join(chance.choices(WORDS, k=chance.randint(2, 24)))


def write_telegram(path: Path, size: int) -> None:
    """One chat as Telegram Desktop writes it, of at least so many bytes."""
    chance = random.Random(1)  # noqa: S311 - the same file again, not a secret
    with path.open("wb") as file:
        file.write(b'{\n "name": "Class 3",\n "type": "private_group",\n "id": 4242,\n "messages": [\n')
        number = 0
        while file.tell() < size:
            number += 1
            text = say(chance)
            message = {
                "id": number,
                "type": "message",
                "date": "2026-07-01T10:00:00",
                "date_unixtime": str(1_700_000_000 + 30 * number),
                "from": chance.choice(NAMES),
                "from_id": f"user{chance.randint(1, 40)}",
                **({"reply_to_message_id": number - 1} if number % 5 == 0 else {}),
                "text": [text, {"type": "mention", "text": "@class"}] if number % 7 == 0 else text,
                "text_entities": [{"type": "plain", "text": text}],
            }
            comma = ",\n" if number > 1 else ""
            file.write((comma + json.dumps(message, ensure_ascii=False, indent=1)).encode())
        file.write(b"\n ]\n}\n")


def write_mbox(path: Path, size: int) -> None:
    """Mails with a text each, some with HTML beside it, every tenth with a file of 200 kB."""
    chance = random.Random(1)  # noqa: S311 - the same file again, not a secret
    blob = base64.encodebytes(chance.randbytes(200_000)).decode()
    with path.open("wb") as file:
        number = 0
        while file.tell() < size:
            number += 1
            body = "\n".join(say(chance) for _ in range(20))
            parts = ["Content-Type: text/plain; charset=utf-8\n\n" + body]
            if number % 2:
                parts.append(f"Content-Type: text/html; charset=utf-8\n\n<p>{body}</p>")
            if number % 10 == 0:
                head = 'Content-Type: application/pdf; name="a.pdf"\nContent-Transfer-Encoding: base64\n'
                parts.append(f"{head}\n{blob}")
            joined = "".join(f"--edge\n{part}\n" for part in parts)
            mail = (
                "From a@example.com Wed Jul  1 10:00:00 2026\n"
                f"Message-ID: <{number}@example.com>\nIn-Reply-To: <{number - number % 8}@example.com>\n"
                "Date: Wed, 1 Jul 2026 10:00:00 +0800\nFrom: =?utf-8?B?5p6X6ICB5biI?= <lin@example.com>\n"
                f"To: class@example.com\nSubject: {say(chance)}\n"
                f'Content-Type: multipart/mixed; boundary="edge"\n\n{joined}--edge--\n\n'
            )
            file.write(mail.encode())


WRITERS: dict[str, Callable[[Path, int], None]] = {"telegram": write_telegram, "mbox": write_mbox}


def once(form: str, path: Path, out: Path) -> None:
    """One import; its last line is JSON."""
    from chatproc.importers import import_chats

    report = import_chats(form, [path], out=out, archive_root=out)
    print(json.dumps({"messages": report.messages, "bad": len(report.not_understood)}))


def beside(path: Path, out: Path) -> None:
    """The same file with chat-miner; its last line is JSON."""
    import logging

    from chatminer import chatparsers  # type: ignore[import-not-found]

    logging.disable()
    parser = chatparsers.TelegramJsonParser(str(path))
    parser.parse_file()
    parser.parsed_messages.write_to_json(str(out / "chat-miner.json"))
    print(json.dumps({"messages": len(parser.parsed_messages.get_df())}))


def measured(command: list[str]) -> dict[str, float]:
    """Seconds, megabytes and counts of a process."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if process.stdout is None:
        raise SystemExit("no output to read")
    last = process.stdout.read().decode().splitlines()[-1]
    _, _, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    cpu = usage.ru_utime + usage.ru_stime
    return {"wall": wall, "cpu": cpu, "peak": usage.ru_maxrss / 1024, **json.loads(last)}


def row(name: str, found: dict[str, float], size: int) -> None:
    """One line of the table."""
    rate = size / 1e6 / found["cpu"]
    print(
        f"| {name} | {found['messages']:,} | {found['wall']:.1f} | {found['cpu']:.1f} "
        f"| {rate:.0f} | {found['peak']:.0f} |",
        flush=True,
    )


def main() -> None:
    """The table."""
    if sys.argv[1:2] == ["once"]:
        once(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
        return
    if sys.argv[1:2] == ["beside"]:
        beside(Path(sys.argv[2]), Path(sys.argv[3]))
        return
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--mb", type=int, default=200, help="size of each export")
    options.add_argument("--formats", nargs="*", default=list(WRITERS), choices=list(WRITERS))
    options.add_argument("--runs", type=int, default=1)
    options.add_argument("--beside", metavar="PYTHON", help="a Python that has chat-miner")
    settings = options.parse_args()
    print("| import | messages | wall s | cpu s | MB / cpu s | peak MB |\n|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for form in settings.formats:
            path = Path(folder, "result.json" if form == "telegram" else "export.mbox")
            WRITERS[form](path, settings.mb * 1_000_000)
            size = path.stat().st_size
            me = [sys.executable, "-W", "ignore", __file__]
            for _ in range(settings.runs):
                row(f"`{form}`, {size / 1e6:.0f} MB", measured([*me, "once", form, str(path), folder]), size)
                if settings.beside and form == "telegram":
                    found = measured([settings.beside, __file__, "beside", str(path), folder])
                    row("chat-miner, the same file", found, size)
            path.unlink()


if __name__ == "__main__":
    main()
