"""Access checks of every request, and the security headers of every response.

Host      must be an IP address, localhost or a configured name.  This stops DNS rebinding, in which a stranger's page
          sends its own host name.
token     in `Authorization: Bearer …`, or as the password of `Basic`, which browsers can ask for; never in the URL
Origin    of a request that changes something must be the service itself.  A stranger's page sends its own or `null`.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crystalperf.service import problems
from crystalperf.service.problems import ProblemError
from crystalperf.service.settings import Settings

SAFE = ("GET", "HEAD", "OPTIONS")

OPEN = ("/health",)
"""Paths that need no token: they reveal only that the service runs."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The content security policy: pages load and run this service's files only, no inline scripts."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # without a referrer, the service's own forms would send `Origin: null`
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

MAX_URL = 16_384
"""Bytes of path and query."""


class Shield:
    """ASGI middleware that checks access."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it to the application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Content-Security-Policy", POLICY)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            self.check(scope)
        except ProblemError as problem:
            await problems.response(problem)(scope, receive, sent)
        else:
            await self._app(scope, receive, sent)

    def check(self, scope: Scope) -> None:
        """Raise ProblemError for a request with a wrong host, token or origin."""
        headers = Headers(scope=scope)
        if len(scope.get("raw_path", b"")) + len(scope["query_string"]) > MAX_URL:
            raise ProblemError(413, f"the URL is longer than {MAX_URL} bytes; send a body, or fewer parameters")
        host = headers.get("host", "")
        if not host or not self._is_ours(host) or len(headers.getlist("host")) > 1:
            raise ProblemError(421, "unknown host name in Host; start the service with --allow-host NAME")
        if scope["path"] not in OPEN:
            self._check_token(headers)
        if scope["method"] not in SAFE:
            self._check_origin(headers, host)

    def _is_ours(self, host: str) -> bool:
        match = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^\[\]:/@\s]+)(:\d{1,5})?", host)
        if match is None:
            return False
        name = match[1].strip("[]").lower()
        if name == "localhost" or name in self._settings.hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _check_token(self, headers: Headers) -> None:
        token = self._settings.token
        if not token:
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "basic":
            try:
                given = base64.b64decode(given, validate=True).decode().partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                given = ""
        elif scheme.lower() != "bearer":
            given = ""
        if not hmac.compare_digest(given.strip().encode(), token.encode()):
            problem = ProblemError(
                401, "a token is needed: send Authorization: Bearer TOKEN, or type it as the password in a browser"
            )
            problem.headers = {"WWW-Authenticate": 'Bearer, Basic realm="CrystalPerf", charset="UTF-8"'}
            raise problem

    def _check_origin(self, headers: Headers, host: str) -> None:
        """Check the Origin header.  Browsers send it; programs may omit it, and no page can make them send requests."""
        origin = headers.get("origin")
        foreign = origin is not None and origin.partition("://")[2].lower() != host.lower()
        if foreign or headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise ProblemError(403, "a page of another site requested a change; only pages of this service may do that")
