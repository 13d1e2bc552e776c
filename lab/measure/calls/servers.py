# mypy: ignore-errors
"""Calls between processes and of servers: XML-RPC, connections, selectors, accepting, TLS."""

from __future__ import annotations

import http.server
import multiprocessing.connection
import selectors
import socket
import socketserver
import ssl
import xmlrpc.client
from collections.abc import Callable, Iterator
from typing import Any

from lab.measure.calls.cases import Cases, Place, times
from lab.measure.calls.materials import BODY, MIB, noise, one
from lab.measure.calls.peers import Dialled, lines

CASES = Cases()
case, net = CASES.case, CASES.net


def proxy(place: Place) -> xmlrpc.client.ServerProxy:
    return xmlrpc.client.ServerProxy(f"http://{place.peer}:{place.ports['xmlrpc']}/", allow_none=True)


def call_slow(place: Place) -> Any:
    return proxy(place).slow(1)


net(xmlrpc.client.ServerProxy.__dict__["_ServerProxy__request"], lambda p: p, call_slow)
net(xmlrpc.client.Transport.request, lambda p: p, call_slow)
net(xmlrpc.client.Transport.single_request, lambda p: p, call_slow)
net(xmlrpc.client.MultiCall.__call__, lambda p: p, lambda p: list(_multi(proxy(p))()))


def _multi(its: Any) -> Any:
    calls = xmlrpc.client.MultiCall(its)
    calls.slow(1)
    calls.slow(2)
    return calls


def peer_connection(place: Place) -> Any:
    return multiprocessing.connection.Client(place.address("connection"), authkey=b"peer")


Connection = multiprocessing.connection.Connection
net(multiprocessing.connection.Client, lambda p: p, lambda p: peer_connection(p).close())
net(
    multiprocessing.connection.SocketClient,
    lambda p: p,
    times(5, lambda p: multiprocessing.connection.SocketClient(p.address("lines")).close()),
)
net(
    multiprocessing.connection._ConnectionBase.recv_bytes,
    peer_connection,
    lambda its: (its.send_bytes(b"x"), its.recv_bytes()),
)
net(Connection._recv_bytes, peer_connection, lambda its: (its.send_bytes(b"x"), its.recv_bytes()))
net(multiprocessing.connection._ConnectionBase.poll, peer_connection, lambda its: (its.send_bytes(b"x"), its.poll(1)))
net(
    multiprocessing.connection.wait,
    peer_connection,
    lambda its: (its.send_bytes(b"x"), multiprocessing.connection.wait([its])),
)


def selected(kind: Any) -> Callable[[Place], Iterator[Any]]:
    def workload(place: Place) -> Iterator[Any]:
        with lines(place, b"hello\n") as its, kind() as selector:
            selector.register(its, selectors.EVENT_READ)
            yield lambda: selector.select(1)

    return workload


case(selectors.EpollSelector.select)(selected(selectors.EpollSelector))
case(selectors.PollSelector.select if "select" in vars(selectors.PollSelector) else selectors._PollLikeSelector.select)(
    selected(selectors.PollSelector)
)
case(selectors.SelectSelector.select)(selected(selectors.SelectSelector))


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.rfile.readline()
        self.wfile.write(b"ok\n")


def served(handler: Any, text: str = "one line|") -> Callable[[Place], Iterator[Any]]:
    def workload(place: Place) -> Iterator[Any]:
        with Dialled(place) as peer, socketserver.TCPServer(("0.0.0.0", 0), handler) as server:
            peer.dial(server.server_address[1], text)
            yield lambda: server.handle_request()

    return workload


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


case(socketserver.BaseServer.handle_request)(served(_Handler))
case(socketserver.BaseServer._handle_request_noblock)(served(_Handler))
case(socketserver.TCPServer.get_request)(served(_Handler))
case(http.server.BaseHTTPRequestHandler.handle_one_request)(served(_Page, "GET / HTTP/1.0||"))
case(http.server.BaseHTTPRequestHandler.handle)(served(_Page, "GET / HTTP/1.0||"))


@case(socket.socket.accept)
def _accept(place: Place) -> Iterator[Any]:
    with Dialled(place) as peer, socket.create_server(("0.0.0.0", 0)) as server:
        peer.dial(server.getsockname()[1], "hello|")
        yield lambda: server.accept()[0].close()


@case(multiprocessing.connection.SocketListener.accept)
def _listen(place: Place) -> Iterator[Any]:
    with Dialled(place) as peer, multiprocessing.connection.Listener(("0.0.0.0", 0)) as server:
        peer.dial(server.address[1], "hello|")
        yield lambda: server.accept().close()


@case(socket.socket.sendfile)
def _sendfile(place: Place) -> Iterator[Any]:
    path = one(4 * MIB)(place.folder)
    yield None
    with lines(place, b"SINK 4194304\n") as its, path.open("rb") as source:
        yield lambda: its.sendfile(source)


@case(socketserver._SocketWriter.write)
def _socket_writer(place: Place) -> Iterator[Any]:
    with lines(place, b"SINK 4194304\n") as its:
        yield lambda: socketserver._SocketWriter(its).write(noise(4 * MIB))


def secure(place: Place, text: bytes = b"") -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    its = context.wrap_socket(socket.create_connection(place.address("tls")), do_handshake_on_connect=False)
    if text:
        its.do_handshake()
        its.sendall(text)
    return its


net(ssl.SSLSocket.do_handshake, secure, lambda its: its.do_handshake())
net(ssl.SSLSocket.recv, lambda p: secure(p, b"hello\n"), lambda its: its.recv(100))
net(ssl.SSLSocket.read, lambda p: secure(p, b"SEND 100000\n"), lambda its: [its.read(20000) for _ in range(5)])
net(
    ssl.SSLSocket.recv_into,
    lambda p: secure(p, b"SEND 100000\n"),
    lambda its: [its.recv_into(bytearray(20000)) for _ in range(5)],
)
net(ssl.SSLSocket.sendall, lambda p: secure(p, b"SINK 2000000\n"), lambda its: its.sendall(BODY))
net(ssl.get_server_certificate, lambda p: p, lambda p: ssl.get_server_certificate(p.address("tls")))
