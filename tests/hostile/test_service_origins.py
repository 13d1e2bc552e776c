"""Addresses that a job may be made of: those below a server that the service was given, and nothing else."""

from __future__ import annotations

import pytest

from crystalperf.indexes.errors import SettingError
from crystalperf.service.origins import below, origin
from crystalperf.service.problems import ProblemError

GIVEN = ["http://history:18080", "https://gate.corp/one/spark-history"]


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("http://history:18080", "http://history:18080"),
        ("http://HISTORY:18080/history/app-1/jobs/?page=2#x", "http://history:18080/history/app-1/jobs/"),
        ("https://gate.corp:443/one/spark-history/api/v1/applications/app-1",
         "https://gate.corp/one/spark-history/api/v1/applications/app-1"),
        ("https://gate.corp/one/spark-history/", "https://gate.corp/one/spark-history/"),
    ],
)  # fmt: skip
def test_address_below_a_given_server_takes_its_spelling(text: str, asked: str) -> None:
    assert below(GIVEN, text) == asked


@pytest.mark.parametrize(
    "text",
    [
        "http://history:18081/",
        "http://history/",
        "https://history:18080/",
        "http://history.evil:18080/",
        "http://evil/http://history:18080/",
        "http://history:18080@evil/",
        "http://evil@history:18080/",
        "http://evil\\@history:18080/",
        "http://history:18080\\.evil/",
        "http://history:18080%2eevil/",
        "http://history:99999/",
        "http://history:0/",
        "http://[::1]:18080/",
        "http://169.254.169.254/latest/meta-data/",
        "http:///history:18080/",
        "http:history:18080/",
        "//history:18080/",
        "file://history:18080/etc/passwd",
        "ftp://history:18080/",
        "s3://bucket/log",
        "filecache::http://history:18080/x",
        "https://gate.corp/",
        "https://gate.corp/one/spark-history-other/history/app-1",
        "https://gate.corp/one/spark-history/../../two/history/app-1",
        "https://gate.corp/one/spark-history/./../two",
        "https://gate.corp/one/spark-history/%2e%2e/%2e%2e/two",
        "https://gate.corp/one/spark-history/..%2f..",
        "https://gate.corp/one/spark-history/\r\nHost: evil",
        "http://history:18080/\x00",
        "http://history:18080/ ",
        "http://histo\u0433y:18080/",
        "http://history:18080\uff0fx",
        "",
    ],
    ids=ascii,
)
def test_addresses_outside_the_given_servers_are_refused(text: str) -> None:
    with pytest.raises(ProblemError) as refused:
        below(GIVEN, text)
    assert refused.value.status == 403
    with pytest.raises(ProblemError, match="--history"):
        below([], text)


@pytest.mark.parametrize(
    "text", ["history:18080", "file:///logs", "http://", "http://me@h", "http://h/x?y", "s3://b", ""]
)
def test_server_address_with_more_than_an_origin_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match="http://HOST:18080"):
        origin(text)


def test_trailing_slash_of_a_server_is_ignored() -> None:
    assert origin("http://history:18080/") == "http://history:18080"
    assert (
        below([origin("http://history:18080/")], "http://history:18080/history/a") == "http://history:18080/history/a"
    )
