# mypy: ignore-errors
"""Calls of fsspec, requests and urllib3 over the network."""

from __future__ import annotations

from typing import Any

import fsspec
import requests
import urllib3
from fsspec.caching import MMapCache
from fsspec.implementations.cached import SimpleCacheFileSystem, WholeFileCacheFileSystem
from fsspec.implementations.ftp import FTPFileSystem
from fsspec.implementations.http import HTTPFileSystem
from urllib3.util.connection import create_connection as urllib3_connection
from urllib3.util.wait import wait_for_read

from lab.measure.calls.cases import Cases, Place, times
from lab.measure.calls.materials import BODY, one
from lab.measure.calls.peers import lines

CASES = Cases()
net = CASES.net

WEB = HTTPFileSystem()
net(HTTPFileSystem._cat_file, lambda p: p, lambda p: WEB.cat_file(p.url()))
net(HTTPFileSystem._info, lambda p: p, lambda p: WEB.info(p.url()))
net(HTTPFileSystem._exists, lambda p: p, lambda p: WEB.exists(p.url()))
net(HTTPFileSystem._isdir, lambda p: p, lambda p: WEB.isdir(p.url("a/")))
net(HTTPFileSystem._ls, lambda p: p, lambda p: WEB.ls(p.url("a/")))
net(HTTPFileSystem._ls_real, lambda p: p, lambda p: WEB.ls(p.url("a/")))
net(HTTPFileSystem._get_file, lambda p: p, lambda p: WEB.get_file(p.url(), str(p.folder / "x")))
net(
    HTTPFileSystem._put_file,
    lambda p: one(300_000)(p.folder) and p,
    lambda p: WEB.put_file(str(p.folder / "a"), p.url("a")),
)
net(HTTPFileSystem._open, lambda p: p, lambda p: WEB.open(p.url()).close())
net(HTTPFileSystem._glob, lambda p: p, lambda p: WEB.glob(p.url("a/*")))
net(fsspec.implementations.http.HTTPFile.read, lambda p: WEB.open(p.url()), lambda its: its.read())
net(
    fsspec.implementations.http.HTTPFile.async_fetch_range,
    lambda p: WEB.open(p.url()),
    lambda its: its._fetch_range(0, 50000),
)
net(fsspec.spec.AbstractBufferedFile.read, lambda p: WEB.open(p.url(), block_size=50000), lambda its: its.read(100000))
net(
    MMapCache._fetch,
    lambda p: MMapCache(65536, lambda start, end: WEB.cat_file(p.url(), start, end), 200000),
    lambda its: its._fetch(0, 150000),
)
net(
    SimpleCacheFileSystem._open,
    lambda p: (SimpleCacheFileSystem(fs=WEB, cache_storage=str(p.folder / "c"), skip_instance_cache=True), p),
    lambda its: its[0].open(its[1].url()).read(),
)
net(
    WholeFileCacheFileSystem._open,
    lambda p: (WholeFileCacheFileSystem(fs=WEB, cache_storage=str(p.folder / "c"), skip_instance_cache=True), p),
    lambda its: its[0].open(its[1].url()).read(),
)
net(fsspec.asyn.sync, lambda p: p, lambda p: WEB.cat_file(p.url()))
net(fsspec.asyn.AsyncFileSystem._cat, lambda p: p, lambda p: WEB.cat([p.url(), p.url("bytes/100000")]))
net(FTPFileSystem._connect, lambda p: p, lambda p: FTPFileSystem(p.peer, p.ports["ftp"], skip_instance_cache=True))

net(requests.api.get, lambda p: p, lambda p: requests.get(p.url()))
net(requests.api.post, lambda p: p, lambda p: requests.post(p.url("a"), data=BODY))
net(requests.Session.request, lambda p: (requests.Session(), p), lambda its: its[0].request("GET", its[1].url()))
net(requests.Session.send, lambda p: (requests.Session(), p), lambda its: its[0].get(its[1].url()))
net(
    requests.adapters.HTTPAdapter.send,
    lambda p: (requests.Session(), p),
    lambda its: its[0].get(its[1].url(), stream=True).close(),
)
net(
    requests.Response.iter_content,
    lambda p: requests.get(p.url(), stream=True),
    lambda its: list(its.iter_content(65536)),
)
net(requests.Response.iter_lines, lambda p: requests.get(p.url(), stream=True), lambda its: list(its.iter_lines()))
net(requests.Response.content.fget, lambda p: requests.get(p.url(), stream=True), lambda its: its.content)


def pool(place: Place) -> urllib3.HTTPConnectionPool:
    return urllib3.HTTPConnectionPool(*place.address("http"))


def pooled(place: Place) -> Any:
    return pool(place).urlopen("GET", "/bytes/200000", preload_content=False)


net(urllib3.HTTPConnectionPool.urlopen, pool, lambda its: its.urlopen("GET", "/bytes/100000"))
net(
    urllib3.HTTPConnectionPool._make_request,
    pool,
    lambda its: its.urlopen("GET", "/bytes/100", preload_content=False).close(),
)
net(urllib3.PoolManager.urlopen, lambda p: (urllib3.PoolManager(), p), lambda its: its[0].request("GET", its[1].url()))
net(urllib3.response.HTTPResponse.read, pooled, lambda its: its.read())
net(urllib3.response.HTTPResponse.stream, pooled, lambda its: list(its.stream(20000)))
net(urllib3.response.HTTPResponse._raw_read, pooled, lambda its: its.read())
net(urllib3.connection.HTTPConnection._new_conn, pool, times(5, lambda its: its._new_conn().connect()))
net(urllib3_connection, lambda p: p, times(5, lambda p: urllib3_connection(p.address("lines")).close()))
net(wait_for_read, lambda p: lines(p, b"hello\n"), lambda its: wait_for_read(its, 1))
