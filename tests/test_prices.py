"""The cost of a job on other machines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from crystalperf import query
from crystalperf.indexes.errors import CrystalPerfError, InputError, SettingError
from crystalperf.query.advise.machine_prices import duration_ms, read_machines
from crystalperf.query.run import Run

DEMO = Path(__file__).parent.parent / "lab" / "recordings" / "demo-q9"

MACHINES = """name,price_per_hour,cores,memory,network,most
small,0.10,2,2GiB,1Gbps,3
wide,0.12,2,2GiB,10Gbps,
big,0.19,4,4GiB,2Gbps,
odd,0.15,3,2GiB,1Gbps,
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return query.profile(DEMO, output=tmp_path_factory.mktemp("prices") / "demo.duckdb")


@pytest.fixture
def machines(tmp_path: Path) -> Path:
    path = tmp_path / "machines.csv"
    path.write_text(MACHINES, encoding="utf-8")
    return path


def test_each_offer_is_what_predict_says_times_the_price(run: Run, machines: Path) -> None:
    answer = run.priced(machines, "small", counts=[2, 4])
    settings = {(each.machine, each.workers): each.setting for each in answer.offers}
    assert settings == {
        ("small", 2): "workers=2",  # of which there are at most 3
        ("wide", 2): "workers=2, network=10x",
        ("wide", 4): "workers=4, network=10x",
        ("big", 2): "workers=2, cores=4, memory=2x, network=2x",
        ("big", 4): "workers=4, cores=4, memory=2x, network=2x",
        ("odd", 2): "workers=2, cores=3",
        ("odd", 4): "workers=4, cores=3",
    }
    for each in answer.offers:
        said = run.predict(each.setting.split(", "))
        assert each.predicted_ms == said.predicted_ms
        assert each.interval_ms == said.interval_ms
    paid = {each.machine: each.price for each in answer.offers if each.workers == 2}
    big = next(each for each in answer.offers if each.machine == "big" and each.workers == 2)
    assert paid["big"] == pytest.approx(2 * 0.19 * big.predicted_ms / 3.6e6)
    assert answer.price == pytest.approx(2 * 0.10 * answer.runtime_ms / 3.6e6)


def test_cheapest_offer_meets_the_deadline_and_frontier_is_not_dominated(run: Run, machines: Path) -> None:
    answer = run.priced(machines, "small", counts=[1, 2, 4, 8], deadline_ms=90_000)
    prices = [each.price for each in answer.offers]
    assert prices == sorted(prices)
    best = answer.cheapest
    assert best.interval_ms[1] <= 90_000
    assert not [each for each in answer.offers if each.meets_deadline == "yes" and each.price < best.price]
    for one in answer.offers:
        beaten = any(other.price < one.price and other.predicted_ms <= one.predicted_ms for other in answer.offers)
        assert one.pareto_optimal != beaten


def test_deadline_that_no_offer_meets_is_reported(run: Run, machines: Path) -> None:
    answer = run.priced(machines, "small", counts=[2], deadline_ms=1)
    assert answer.cheapest is None
    assert {each.meets_deadline for each in answer.offers} == {"no"}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "no column 'name'"),
        ("name;price_per_hour\nsmall;1\n", "no column 'name'; .* separated by commas"),
        ("name,cores\nsmall,2\n", "no column 'price_per_hour'"),
        ("name,price_per_hour\nsmall,\n", "line 2: 'small' has no price_per_hour"),
        ("name,price_per_hour\n,1\n", "line 2: the machine has no name"),
        ("name,price_per_hour\nsmall,free\n", "line 2: price_per_hour is 'free'"),
        ("name,price_per_hour\nsmall,-1\n", "price_per_hour is '-1'"),
        ("name,price_per_hour,memory\nsmall,1,lots\n", "memory is 'lots'; write for example 16GiB"),
        ("name,price_per_hour,network\nsmall,1,10\n", "network is '10'; write for example 10Gbps"),
        ("name,price_per_hour,memory\nsmall,1,8B\n", "memory is '8B'; write for example 16GiB"),
        ("name,price_per_hour,disk\nsmall,1,8MB\n", "disk is '8MB'; write for example 500MB/s"),
        ("name,price_per_hour\nsmall,1\nsmall,2\n", "'small' is in the table twice"),
    ],
)
def test_invalid_price_table_is_refused_with_its_line(tmp_path: Path, text: str, wrong: str) -> None:
    path = tmp_path / "machines.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=wrong):
        read_machines(path)


@pytest.mark.later
def test_stdout_is_empty_if_nothing_is_answered(
    crystalperf: Callable[..., tuple[int, str, str]], run: Run, machines: Path
) -> None:
    asked = ("predict", run.path, "--prices", machines, "--on", "small")
    code, out, err = crystalperf(*asked, "--set", "workers=2")
    assert (code, err) == (0, "")
    assert "2 × wide" in out
    for command in ((*asked, "--set", "workers=1000"), ("advise", run.path, "--set", "input=2x")):
        code, out, err = crystalperf(*command)
        assert (code, out, err.count("\n")) == (1, "", 1)
        code, out, _ = crystalperf(*command, "--json")
        assert (code, out[0]) == (1, "{")


def test_unknown_machine_is_named(run: Run, machines: Path) -> None:
    with pytest.raises(SettingError, match=r"'huge'.* small, wide, big, odd"):
        run.priced(machines, "huge")


@pytest.mark.parametrize(("text", "ms"), [("10m", 6e5), ("90", 9e4), ("1.5 h", 5.4e6), ("250ms", 250)])
def test_durations_in_common_notations(text: str, ms: float) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize("text", ["", "soon", "-1m", "0s"])
def test_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(CrystalPerfError):
        duration_ms(text)


def test_sizes_read_the_same_as_in_a_setting(tmp_path: Path) -> None:
    table = tmp_path / "machines.csv"
    table.write_text("name,price_per_hour,memory,network\na,1,8g,1Gbps\nb,1,8Gi,125MB/s\nc,1,8GiB,1000Mbit/s\n")
    amounts = [each.amounts for each in read_machines(table)]
    assert {each["memory"] for each in amounts} == {8 * 2.0**30}
    assert {each["network"] for each in amounts} == {125e6}
