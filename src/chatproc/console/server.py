"""The console as a process: a socket on loopback, the server over it, and its end with a signal.

It opens no other address than 127.0.0.1, whatever it is asked.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from typing import TYPE_CHECKING, Any, Self

from chatproc.errors import ChatprocError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_LAST_WORDS = 10.0


class ConsoleServer:
    """A console at work in a thread of this process, between `with` and its end.

    Args:
        config_file: Read again for each page.
        port: On 127.0.0.1; 0: one that is free.

    Raises:
        ConfigError: The packages of the extra `console` are not installed.
        ChatprocError: The port is taken.

    Example:
        >>> with ConsoleServer(Path("config/processor.toml")) as console:  # doctest: +SKIP
        ...     print(console.address)
    """

    def __init__(self, config_file: Path, port: int = 0) -> None:
        """Take the port; nothing answers yet."""
        try:
            import uvicorn

            from chatproc.console.app import make_app
            from chatproc.console.security import Gate
            from chatproc.console.works import Works
        except ModuleNotFoundError as missing:
            raise ConfigError(
                f"the console needs the package {missing.name}",
                hint="pip install 'chatproc[console]'",
            ) from None
        self._socket = _bound(port)
        self.port: int = self._socket.getsockname()[1]
        gate = Gate(self.port)
        self.address = gate.address
        """Opens the console, once."""
        self.works = Works()
        app = make_app(config_file, gate, self.works)
        self._server: Any = uvicorn.Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="none",
                lifespan="off",
                timeout_graceful_shutdown=2,
            )
        )
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="console", daemon=True
        )

    def __enter__(self) -> Self:
        """Begin to answer."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End what is at work, losing nothing, and let go of the port."""
        self.works.stop(_LAST_WORDS)
        self._server.should_exit = True
        self._thread.join(_LAST_WORDS)
        self._socket.close()


def _bound(port: int) -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind(("127.0.0.1", port))
        opened.listen(64)
    except OSError as error:
        opened.close()
        raise ChatprocError(
            f"port {port} cannot be used: {error.strerror}",
            where=f"127.0.0.1:{port}",
            hint="give another with --port, or leave it out: a free one is taken",
        ) from None
    return opened


def serve(config_file: Path, port: int, opened: Callable[[str], None]) -> None:
    """Run a console until SIGINT or SIGTERM.

    Args:
        config_file: Read again for each page.
        port: On 127.0.0.1; 0: one that is free.
        opened: Told the address, once it answers.

    Raises:
        ConfigError: The packages of the extra `console` are not installed.
        ChatprocError: The port is taken.
    """
    with ConsoleServer(config_file, port) as console, _signalled() as ended:
        opened(console.address)
        ended.wait()


@contextlib.contextmanager
def _signalled() -> Iterator[threading.Event]:
    """An event that the first signal sets; a second one ends the process at once."""
    ended = threading.Event()
    usual = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def end(number: int, _frame: object) -> None:
        ended.set()
        signal.signal(number, signal.SIG_DFL)

    for number in usual:
        signal.signal(number, end)
    try:
        yield ended
    finally:
        for number, known in usual.items():
            signal.signal(number, known)
