"""Running the service on a port until SIGINT or SIGTERM."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from crystalperf.indexes.errors import CrystalPerfError, InputError, Remedy
from crystalperf.indexes.temporary import make_private
from crystalperf.service.app import application
from crystalperf.service.connections import connection
from crystalperf.service.jobs import FOLDERS
from crystalperf.service.settings import Settings


def serve(settings: Settings, ready: Callable[[int], None] = lambda _port: None) -> None:
    """Serve until SIGINT or SIGTERM; call `ready` with the port once the service accepts requests.

    Raises InputError if the port is in use, or the home is not writable or belongs to another service.  Raises
    CrystalPerfError if the service cannot start for another reason, which uvicorn has written to stderr.
    """
    config = uvicorn.Config(
        application(settings),
        host=settings.host,
        port=settings.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=3,
        lifespan="on",
        ws="none",
        proxy_headers=False,
        http=connection(settings.limits.silent_s),
        h11_max_incomplete_event_size=64 << 10,
    )
    with _locked(settings.home), _socket(settings) as listening:
        try:
            _Server(config, ready).run(sockets=[listening])
        except SystemExit as error:  # uvicorn's exit code has another meaning here
            raise CrystalPerfError("the service could not start; the lines above say why") from error


class _Server(uvicorn.Server):
    """A uvicorn server that reports its port once it has started."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[int], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():
            self._ready(each.getsockname()[1])


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    """Lock the home: a second service would treat running jobs as interrupted by a restart."""
    folder = home / "service"
    try:
        for each in (home / "runs", folder, *(folder / name for name in FOLDERS)):
            make_private(each)
            if not os.access(each, os.R_OK | os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        lock = (folder / "lock").open("ab")
    except OSError as error:
        raise InputError(
            f"{home}: the service cannot write there ({error.strerror or error})", Remedy("choose another folder")
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{home}: another service uses this folder; stop it, or choose another folder") from None
        except OSError:
            pass  # no locks on this file system
        yield


def _socket(settings: Settings) -> socket.socket:
    """The bound socket; binding here turns a wrong address into a one-sentence error."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the socket names its protocol; otherwise each response takes 40 ms longer.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host.strip("[]"), settings.port))
    except (OSError, UnicodeError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or error
        other = "port" if getattr(error, "errno", None) in (errno.EADDRINUSE, errno.EACCES) else "host"
        raise InputError(
            f"{settings.host}:{settings.port}: cannot listen there ({reason}); choose another {other}"
        ) from error
    return listening
