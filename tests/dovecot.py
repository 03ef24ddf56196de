"""A real Dovecot on loopback, in a folder of its own: started, stopped, killed and started again by tests.

Mails are written straight into its Maildirs, which takes a moment for ten thousand of them. `Cut` stands
between client and server and cuts the connection at a byte that the test names.
"""

from __future__ import annotations

import contextlib
import getpass
import grp
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any, Self

USER, PASSWORD = "wang@example.org", "correct-horse"
PATIENCE = 30.0
START = 1_782_871_200


def why_not() -> str | None:
    """Why there can be no server here; `None` when there can."""
    if shutil.which("dovecot") is None or shutil.which("openssl") is None:
        return "no dovecot here (Debian: apt-get install dovecot-imapd openssl)"
    said = subprocess.run(["dovecot", "--version"], capture_output=True, text=True, check=False).stdout
    return None if said.startswith("2.3.") else f"the tests' settings are for Dovecot 2.3, not {said[:20]}"


def mail(number: int, text: str = "", *, sent_at: int | None = None, **headers: str) -> bytes:
    """A plain mail; its Message-ID is `<NUMBER@example.org>`."""
    fields = {
        "Message-ID": f"<{number}@example.org>",
        "Date": formatdate(START + number if sent_at is None else sent_at),
        "From": "Li <li@example.com>",
        "To": USER,
        "Subject": f"mail {number}",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{head}\r\n{text or f'text {number}'}\r\n".encode()


class Dovecot:
    """A server with one account; use as a context."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="chatproc-dovecot-"))
        self.plain_port, self.port = free_port(), free_port()
        self._owner = (65534, 65534) if os.getuid() == 0 else (os.getuid(), os.getgid())
        self._server: subprocess.Popen[bytes] | None = None
        self._written = 0
        self.folder.chmod(0o755)  # the server's own users have to get in
        self._write_certificate()
        self._write_settings()
        self.make_folder("INBOX")

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def ca_file(self) -> Path:
        return self.folder / "cert.pem"

    def start(self) -> None:
        """Start, and wait until it answers."""
        command = ["dovecot", "-F", "-c", str(self.folder / "dovecot.conf")]
        log = (self.folder / "start.log").open("ab")
        self._server = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        log.close()
        until = time.monotonic() + PATIENCE
        while True:
            if self._answers():
                return
            if time.monotonic() > until or self._server.poll() is not None:
                raise AssertionError((self.folder / "start.log").read_text() + self.log())
            time.sleep(0.02)

    def _answers(self) -> bool:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.plain_port), 5) as wire,
        ):
            return wire.recv(100).startswith(b"* OK")
        return False

    def kill(self) -> None:
        """SIGKILL to all of it."""
        if self._server is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._server.pid, signal.SIGKILL)
            self._server.wait()
            self._server = None

    def log(self) -> str:
        file = self.folder / "log"
        return file.read_text() if file.exists() else ""

    def doveadm(self, *arguments: str) -> str:
        """What an administrator does."""
        command = ["doveadm", "-c", str(self.folder / "dovecot.conf"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout

    def make_folder(self, mailbox: str) -> Path:
        """A folder by its name on the wire."""
        folder = self.maildir(mailbox)
        for part in ("cur", "new", "tmp"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        self._give(folder)
        return folder

    def maildir(self, mailbox: str) -> Path:
        root = self.folder / "mail"
        return root if mailbox == "INBOX" else root / f".{mailbox}"

    def deliver(self, *mails: bytes, mailbox: str = "INBOX", arrived: float | None = None) -> None:
        """Put mails into a folder, as a delivery agent does: whole or not at all."""
        folder = self.maildir(mailbox)
        for raw in mails:
            self._written += 1
            name = f"{START + self._written}.M{self._written:06}P1.test"
            fresh = folder / "tmp" / name
            fresh.write_bytes(raw)
            if os.getuid() == 0:
                os.chown(fresh, *self._owner)
            if arrived is not None:
                os.utime(fresh, (arrived, arrived))
            fresh.rename(folder / "new" / name)

    def restore(self, mailbox: str = "INBOX", *, later: int = 1) -> None:
        """What a restored mailbox looks like: UIDs from 1 on again, under a later UIDVALIDITY."""
        folder = self.maildir(mailbox)
        old = re.findall(r" V(\d+)", (folder / "dovecot-uidlist").read_text())[0]
        self.kill()
        for file in folder.glob("dovecot*"):
            file.unlink()
        self.start()
        self.doveadm("mailbox", "update", "-u", USER, "--uid-validity", str(int(old) + later), mailbox)

    def _give(self, folder: Path) -> None:
        if os.getuid() == 0:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, *self._owner)

    def _write_certificate(self) -> None:
        certificate(self.folder / "cert.pem", self.folder / "key.pem")

    def _write_settings(self) -> None:
        me, group = getpass.getuser(), grp.getgrgid(os.getgid()).gr_name
        users = (
            ""
            if os.getuid() == 0
            else (
                f"default_internal_user = {me}\ndefault_login_user = {me}\ndefault_internal_group = {group}\n"
            )
        )
        uid, gid = self._owner
        (self.folder / "users").write_text(f"{USER}:{{PLAIN}}{PASSWORD}\n")
        (self.folder / "dovecot.conf").write_text(f"""
base_dir = {self.folder}/run
state_dir = {self.folder}/state
log_path = {self.folder}/log
protocols = imap
listen = 127.0.0.1
ssl = yes
ssl_cert = <{self.folder}/cert.pem
ssl_key = <{self.folder}/key.pem
disable_plaintext_auth = no
auth_failure_delay = 0
first_valid_uid = 1
mail_location = maildir:{self.folder}/mail
mail_fsync = never
passdb {{
  driver = passwd-file
  args = {self.folder}/users
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={self.folder}
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {self.plain_port}
  }}
  inet_listener imaps {{
    port = {self.port}
    ssl = yes
  }}
}}
service anvil {{
  chroot =
}}
service stats {{
  chroot =
}}
{users}""")


def certificate(cert: Path, key: Path, name: str = "DNS:localhost,IP:127.0.0.1") -> None:
    """A certificate that signs itself, for this machine unless said otherwise."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", "/CN=test",
         "-addext", f"subjectAltName={name}"],
        capture_output=True, check=True,
    )  # fmt: skip


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


class Cut:
    """Passes bytes between a client and a server, and cuts the connection where the test says."""

    def __init__(self, port: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._to = port
        self.after: int | None = None
        """Bytes from the server after which the next connection is cut; `None`: never."""
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                if self._listener.fileno() < 0:
                    return
                client.close()
                continue
            limit, self.after = self.after, None
            for source, sink, most in ((client, server, None), (server, client, limit)):
                threading.Thread(target=self._pass, args=(source, sink, most), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, most: int | None) -> None:
        passed = 0
        with contextlib.suppress(OSError):
            while most is None or passed < most:
                chunk = source.recv(65536 if most is None else min(65536, most - passed))
                if not chunk:
                    break
                sink.sendall(chunk)
                passed += len(chunk)
            else:
                self.cuts += 1
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def settings(server: Dovecot, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any key
    """What stands under `[[connections]]` for the server."""
    return {
        "toolkit": "imap",
        "id": "mail",
        "host": "localhost",
        "port": server.port,
        "ca_file": str(server.ca_file),
        "user": USER,
        **more,
    }
