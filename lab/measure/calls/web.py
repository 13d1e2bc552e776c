# mypy: ignore-errors
"""Calls on sockets, by telnet and by HTTP, of Python's library."""

from __future__ import annotations

import http.client
import socket
import urllib.request
import warnings

from lab.measure.calls.cases import Cases, Place, times
from lab.measure.calls.materials import BODY
from lab.measure.calls.peers import lines

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # deprecated since Python 3.11
    import telnetlib

CASES = Cases()
cpu, net = CASES.cpu, CASES.net

net(socket.create_connection, lambda p: p, times(5, lambda p: socket.create_connection(p.address("lines")).close()))
cpu(socket.create_server, lambda: socket.create_server(("127.0.0.1", 0)).close(), 300)
cpu(socket.getfqdn, lambda: socket.getfqdn("127.0.0.1"), 50)
cpu(socket.socketpair, lambda: [each_end.close() for each_end in socket.socketpair()], 1000)
net(
    socket.SocketIO.readinto,
    lambda p: lines(p).makefile("rb", buffering=0),
    lambda its: [its.readinto(bytearray(20000)) for _ in range(8)],
)
net(telnetlib.Telnet.open, lambda p: p, times(5, lambda p: telnetlib.Telnet(*p.address("lines")).close()))
net(telnetlib.Telnet.read_until, lambda p: _telnet(p, b"hello\n"), lambda its: its.read_until(b"hello\n"))
net(telnetlib.Telnet.read_some, lambda p: _telnet(p, b"hello\n"), lambda its: its.read_some())
net(telnetlib.Telnet.expect, lambda p: _telnet(p, b"hello\n"), lambda its: its.expect([b"o\n"], 1))
net(telnetlib.Telnet.fill_rawq, lambda p: _telnet(p, b"hello\n"), lambda its: its.fill_rawq())


def _telnet(place: Place, text: bytes) -> telnetlib.Telnet:
    its = telnetlib.Telnet(*place.address("lines"))
    its.write(text)
    return its


def http_connection(place: Place) -> http.client.HTTPConnection:
    its = http.client.HTTPConnection(*place.address("http"))
    its.connect()
    return its


def asked(place: Place) -> http.client.HTTPConnection:
    its = http_connection(place)
    its.request("GET", "/bytes/200000")
    return its


def answered(place: Place) -> http.client.HTTPResponse:
    return asked(place).getresponse()


net(http.client.HTTPConnection.connect, lambda p: p, times(5, lambda p: http_connection(p).close()))
net(http.client.HTTPConnection.request, http_connection, lambda its: its.request("PUT", "/a", BODY))
net(http.client.HTTPConnection.send, lambda p: lines_http(p), lambda its: its.send(BODY))
net(http.client.HTTPConnection.getresponse, asked, lambda its: its.getresponse())
net(http.client.HTTPResponse.begin, asked, lambda its: its.getresponse())
net(http.client.HTTPResponse._read_status, asked, lambda its: its.getresponse())
net(http.client.HTTPResponse.read, answered, lambda its: its.read())
net(http.client.HTTPResponse.readinto, answered, lambda its: [its.readinto(bytearray(20000)) for _ in range(10)])
net(http.client.HTTPResponse.readline, answered, times(8, lambda its: its.readline()))
net(http.client.HTTPResponse.read1, answered, times(8, lambda its: its.read1(20000)))
net(http.client.HTTPResponse.peek, answered, times(3, lambda its: its.peek()))
net(http.client.HTTPResponse._safe_read, answered, lambda its: its._safe_read(100000))
cpu(http.client.HTTPConnection.putheader, lambda: _header(), 5000)
net(urllib.request.urlopen, lambda p: p, lambda p: urllib.request.urlopen(p.url()).close())
net(urllib.request.OpenerDirector.open, lambda p: p, lambda p: urllib.request.build_opener().open(p.url()).close())
net(urllib.request.HTTPHandler.http_open, lambda p: p, lambda p: urllib.request.build_opener().open(p.url()).close())
net(
    urllib.request.AbstractHTTPHandler.do_open,
    lambda p: p,
    lambda p: urllib.request.build_opener().open(p.url()).close(),
)
net(urllib.request.urlretrieve, lambda p: p, lambda p: urllib.request.urlretrieve(p.url(), p.folder / "x"))
net(
    urllib.request.FTPHandler.ftp_open,
    lambda p: p,
    lambda p: urllib.request.urlopen(f"ftp://{p.peer}:{p.ports['ftp']}/a").read(),
)
cpu(urllib.request.build_opener, lambda: urllib.request.build_opener(), 100)
cpu(urllib.request.Request.full_url.fset, lambda: urllib.request.Request("http://a/b"), 5000)


def lines_http(place: Place) -> http.client.HTTPConnection:
    its = http_connection(place)
    its.putrequest("PUT", "/a")
    its.putheader("Content-Length", str(len(BODY)))
    its.endheaders()
    return its


def _header() -> None:
    its = http.client.HTTPConnection("a")
    its.putrequest("GET", "/")
    its.putheader("A", "b", "c")
