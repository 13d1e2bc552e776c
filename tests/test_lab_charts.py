"""The chart of errors on public reruns: it shows the figures of docs/figures, and can be read in both schemes."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from lab import charts
from lab.charts import PICTURES, PREDICTORS, README, ROOT, SCHEMES, SOURCES, Colours, chart, errors, shown

SVG = "{http://www.w3.org/2000/svg}"
SETS = {each: errors(each) for each in SOURCES}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_picture_has_the_current_figures(scheme: str) -> None:
    file = ROOT / PICTURES / f"public-reruns-{scheme}.svg"
    assert file.read_text(encoding="utf-8") == chart(SETS, SCHEMES[scheme]), "python -m lab.charts"


def test_readme_has_the_current_figures() -> None:
    assert "\n".join(shown(SETS)) in README.read_text(encoding="utf-8"), "python -m lab.charts"


def test_bars_are_as_long_as_the_mean_errors() -> None:
    bars = ElementTree.fromstring(chart(SETS, SCHEMES["light"])).findall(f"{SVG}rect")[1:]
    means = [float(each.mean) for of in SETS.values() for each in of.values()]
    assert len(bars) == len(SOURCES) * len(PREDICTORS)
    scale = max(float(bar.attrib["width"]) for bar in bars) / max(means)
    assert [float(bar.attrib["width"]) / scale for bar in bars] == pytest.approx(means, abs=0.1)


def test_chart_states_other_figures_if_the_file_has_others() -> None:
    first, second = SOURCES
    worse = {first: SETS[first] | {"Amdahl": replace(SETS[first]["Amdahl"], mean="99.9")}, second: SETS[second]}
    assert "99.9 % (median" in chart(worse, SCHEMES["light"])
    assert "Amdahl’s law 99.9 %" in charts.in_words(worse)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_and_bars_contrast_with_the_ground(scheme: str) -> None:
    colours = SCHEMES[scheme]
    assert contrast(colours.text, colours.ground) >= 7
    assert min(contrast(each, colours.ground) for each in (colours.ours, colours.others)) >= 3


def test_texts_are_inside_the_picture() -> None:
    root = ElementTree.fromstring(chart(SETS, Colours(*"abcd")))
    width = float(root.attrib["width"])
    for text in root.findall(f"{SVG}text"):
        wide = 0.62 if text.attrib["font-weight"] == "bold" else 0.56  # em, the mean of a wide font
        length = wide * charts.SIZE * len(text.text or "")
        x = float(text.attrib["x"])
        assert (x >= length) if text.attrib["text-anchor"] == "end" else (x + length <= width), text.text


def contrast(one: str, other: str) -> float:
    """The ratio of two colours' luminance, as WCAG 2 defines it."""
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(each, 16) / 255 for each in re.findall("[0-9a-f]{2}", colour)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
