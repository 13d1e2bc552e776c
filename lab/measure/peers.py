"""Servers for measured calls to wait for: python -m lab.measure.peers prints their ports as one JSON object.

Each does next to nothing but takes its time, THINK_S for an answer and PIECE_BYTES every PAUSE_S for a body, as a
remote peer does. They serve until their standard input ends.
"""

from __future__ import annotations

import json
import multiprocessing.connection
import socket
import socketserver
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import xmlrpc.server
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

THINK_S = 0.004
PAUSE_S = 0.003
PIECE_BYTES = 16384
HOST = "0.0.0.0"


def send_slowly(connection: socket.socket, count: int) -> None:
    """So many bytes, a piece at a time; each ends in a line feed."""
    while count > 0:
        time.sleep(PAUSE_S)
        size = min(count, PIECE_BYTES)
        connection.sendall(b"x" * (size - 1) + b"\n")
        count -= size


def take_slowly(read: Callable[[int], bytes], count: int) -> None:
    """Read so many bytes, a piece at a time."""
    while count > 0 and (piece := read(min(count, PIECE_BYTES))):
        count -= len(piece)
        time.sleep(PAUSE_S)


class Lines(socketserver.StreamRequestHandler):
    """`SEND n` sends n bytes, `SINK n` reads n bytes and answers, any other line comes back."""

    def handle(self) -> None:
        for line in self.rfile:
            command, _, value = line.decode("latin-1").strip().partition(" ")
            time.sleep(THINK_S)
            if command == "SEND":
                send_slowly(self.connection, int(value))
            elif command == "SINK":
                take_slowly(self.rfile.read, int(value))
                self.wfile.write(b"ok\n")
            else:
                self.wfile.write(line)


class Dialler(socketserver.StreamRequestHandler):
    """`DIAL port TEXT` connects back after a moment, sends TEXT (with \\n written as |), reads until the end."""

    def handle(self) -> None:
        for line in self.rfile:
            _, port, text = line.decode("latin-1").rstrip("\n").split(" ", 2)
            threading.Thread(target=self._dial, args=(int(port), text), daemon=True).start()

    def _dial(self, port: int, text: str) -> None:
        time.sleep(THINK_S)
        with suppress(OSError), socket.create_connection((self.client_address[0], port), 5) as back:
            for part in text.replace("|", "\r\n").splitlines(keepends=True):
                time.sleep(THINK_S)
                back.sendall(part.encode("latin-1"))
            while back.recv(65536):
                pass


class Web(BaseHTTPRequestHandler):
    """/bytes/n is n bytes, with ranges; any other path is a short page; bodies are read slowly."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_PUT(self) -> None:
        take_slowly(self.rfile.read, int(self.headers.get("Content-Length", 0)))
        self._answer(body=True)

    do_POST = do_PUT
    do_DELETE = do_PUT

    def _answer(self, *, body: bool) -> None:
        time.sleep(THINK_S)
        size = int(self.path.rpartition("/")[2]) if self.path.startswith("/bytes/") else 100
        first, last = 0, size - 1
        asked = self.headers.get("Range", "")
        if asked.startswith("bytes="):
            low, _, high = asked[6:].partition("-")
            first, last = int(low), min(int(high or size - 1), size - 1)
        self.send_response(206 if asked else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(last - first + 1))
        self.send_header("Accept-Ranges", "bytes")
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.end_headers()
        self.wfile.flush()
        if body:
            send_slowly(self.connection, last - first + 1)


class Datagrams(socketserver.BaseRequestHandler):
    """Every datagram comes back."""

    def handle(self) -> None:
        data, sender = self.request
        time.sleep(THINK_S)
        sender.sendto(data, self.client_address)


class Chat(socketserver.StreamRequestHandler):
    """A protocol of lines: a greeting and an answer to each command."""

    greeting = ""

    def reply(self, line: str) -> str:
        raise NotImplementedError

    def say(self, text: str) -> None:
        if text:
            self.wfile.write(text.replace("\n", "\r\n").encode("latin-1") + b"\r\n")

    def handle(self) -> None:
        self.say(self.greeting)
        with suppress(OSError):
            while line := self.rfile.readline():
                time.sleep(THINK_S)
                self.say(self.reply(line.decode("latin-1").rstrip("\r\n")))


class Smtp(Chat):
    greeting = "220 peer"

    def reply(self, line: str) -> str:
        command = line[:4].upper()
        if command == "DATA":
            self.say("354 go on")
            while (data := self.rfile.readline()) and data != b".\r\n":
                pass
            return "250 taken"
        return {"EHLO": "250-peer\n250 SIZE 99999999", "QUIT": "221 bye", "VRFY": "252 perhaps"}.get(
            command, "250 fine"
        )


class Pop(Chat):
    greeting = "+OK peer"

    def reply(self, line: str) -> str:
        command = line.split(" ")[0].upper()
        if command in ("RETR", "TOP"):
            return "+OK\n" + "a line of the message\n" * 200 + "."
        return {"STAT": "+OK 3 4000", "LIST": "+OK\n1 100\n2 100\n.", "UIDL": "+OK\n1 a\n2 b\n."}.get(command, "+OK")


class Nntp(Chat):
    greeting = "200 peer"

    def reply(self, line: str) -> str:
        command = line.split(" ")[0].upper()
        return {
            "CAPABILITIES": "101 list\nVERSION 2\nREADER\n.",
            "GROUP": "211 3 1 3 a.group",
            "LIST": "215 list\na.group 3 1 y\n.",
            "ARTICLE": "220 1 <a@b>\nSubject: a\n\n" + "a line\n" * 100 + ".",
            "BODY": "222 1 <a@b>\n" + "a line\n" * 100 + ".",
            "HEAD": "221 1 <a@b>\nSubject: a\n.",
            "STAT": "223 1 <a@b>",
            "DATE": "111 20260101000000",
            "QUIT": "205 bye",
        }.get(command, "500 what")


class Imap(Chat):
    greeting = "* OK [CAPABILITY IMAP4rev1] peer"

    def reply(self, line: str) -> str:
        tag, _, rest = line.partition(" ")
        command = rest.split(" ")[0].upper()
        if command == "LOGOUT":
            return f"* BYE\n{tag} OK"
        if command == "APPEND":
            self.say("+ go on")
            self.rfile.read(int(rest.rpartition("{")[2].rstrip("}")) + 2)
        before = {
            "CAPABILITY": "* CAPABILITY IMAP4rev1\n",
            "SELECT": "* 3 EXISTS\n* 0 RECENT\n",
            "SEARCH": "* SEARCH 1 2\n",
            "LIST": '* LIST () "/" INBOX\n',
            "STATUS": '* STATUS "INBOX" (MESSAGES 3)\n',
            "FETCH": f"* 1 FETCH (BODY[] {{2000}}\n{'x' * 2000})\n",
        }.get(command, "")
        return f"{before}{tag} OK done"


class Ftp(Chat):
    greeting = "220 peer"
    data: socket.socket

    def reply(self, line: str) -> str:
        command, _, _ = line.partition(" ")
        if command in ("EPSV", "PASV"):
            self.data = socket.create_server((HOST, 0))
            port = self.data.getsockname()[1]
            if command == "EPSV":
                return f"229 at (|||{port}|)"
            return f"227 at (10,211,0,2,{port >> 8},{port & 255})"
        if command in ("RETR", "LIST", "NLST", "MLSD", "STOR"):
            self.say("150 here it comes")
            connection, _ = self.data.accept()
            with connection, self.data:
                if command == "RETR":
                    send_slowly(connection, 1 << 18)
                elif command == "STOR":
                    take_slowly(connection.recv, 1 << 30)
                else:
                    time.sleep(PAUSE_S)
                    connection.sendall(b"type=file;size=10; name\r\n" * 20)
            return "226 done"
        return {
            "USER": "331 and",
            "PASS": "230 in",
            "PWD": '257 "/" here',
            "MKD": '257 "/new" made',
            "SIZE": "213 1000",
            "RNFR": "350 to",
            "QUIT": "221 bye",
        }.get(command, "250 fine")


class _Threads(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes in the middle is nothing to report."""


class _Web(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """The same."""


class _Secure(_Threads):
    context: ssl.SSLContext

    def get_request(self) -> tuple[socket.socket, object]:
        connection, address = super().get_request()
        return self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address


def certificate(folder: Path) -> Path:
    """A key and a certificate that sign themselves, in one file."""
    path = folder / "peer.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=peer"]
    subprocess.run([*command, "-keyout", str(path), "-out", f"{path}.crt"], check=True, capture_output=True)
    path.write_text(path.read_text("ascii") + Path(f"{path}.crt").read_text("ascii"), "ascii")
    return path


def _listener(address: tuple[str, int]) -> int:
    listener = multiprocessing.connection.Listener(address, backlog=16, authkey=b"peer")

    def answer(connection: multiprocessing.connection.Connection) -> None:
        with suppress(EOFError, OSError):
            while True:
                message = connection.recv_bytes()
                time.sleep(THINK_S)
                connection.send_bytes(message)

    def serve() -> None:
        while True:
            with suppress(EOFError, OSError, multiprocessing.AuthenticationError):
                threading.Thread(target=answer, args=(listener.accept(),), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return int(listener.address[1])


def _slow(value: int) -> int:
    time.sleep(THINK_S)
    return value


def start() -> dict[str, int]:
    """Every server in a thread; their ports by name."""
    ports: dict[str, int] = {}

    def run(name: str, server: socketserver.TCPServer) -> None:
        ports[name] = server.socket.getsockname()[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()

    handlers = {"lines": Lines, "dial": Dialler, "smtp": Smtp, "pop": Pop, "nntp": Nntp, "imap": Imap, "ftp": Ftp}
    for name, handler in handlers.items():
        run(name, _Threads((HOST, 0), handler))
    run("http", _Web((HOST, 0), Web))
    run("udp", socketserver.ThreadingUDPServer((HOST, 0), Datagrams))
    calls = xmlrpc.server.SimpleXMLRPCServer((HOST, 0), logRequests=False, allow_none=True)
    calls.register_function(_slow, "slow")  # type: ignore[arg-type]
    calls.register_introspection_functions()
    calls.register_multicall_functions()
    run("xmlrpc", calls)
    with tempfile.TemporaryDirectory() as folder, suppress(FileNotFoundError):
        secure = _Secure((HOST, 0), Lines)
        secure.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        secure.context.load_cert_chain(certificate(Path(folder)))
        run("tls", secure)
    ports["connection"] = _listener((HOST, 0))
    return ports


if __name__ == "__main__":
    print(json.dumps(start()), flush=True)
    sys.stdin.read()
