"""The chart of errors on public reruns: drawn from the figures in docs/figures, and put into README.md.

python -m lab.charts       writes docs/pictures/public-reruns-light.svg and -dark.svg, and the part of README.md
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import NamedTuple

from lab.pages import put

ROOT = Path(__file__).parent.parent
README, MARK = ROOT / "README.md", "public reruns"
PICTURES = "docs/pictures"
HEADING = "Mean error: runtime with another number of executors"

PREDICTORS = {
    "CrystalPerf": "CrystalPerf",
    "Sparklens: recorded tasks on other slots": "Sparklens’ replay",
    "Amdahl": "Amdahl’s law",
    "no change": "no change",
    "one run against the median of its reruns": "noise: one rerun",
}
"""Labels of the bars from top to bottom, by the predictor in the file."""


class Source(NamedTuple):
    """Predictions of one public set: its title, its file in docs/figures, and the job in it."""

    title: str
    file: str
    job: str


SOURCES = (
    Source("k-means and Wikipedia, Spark 1.4 and 1.5", "public-reruns.json", "all"),
    Source("TPC-DS, Spark 1.6", "public-tpcds.json", "HiveQuery"),
)


@dataclass(frozen=True)
class Error:
    """A predictor's errors |predicted / measured − 1| in %, with its numbers of answers and refusals."""

    mean: str
    median: str
    answered: str
    refused: str


class Colours(NamedTuple):
    """Text has a contrast of 7 or more with the ground, bars 3 or more."""

    ground: str
    text: str
    ours: str
    others: str


SCHEMES = {
    "light": Colours("#ffffff", "#24292f", "#1f5fbf", "#858d97"),
    "dark": Colours("#1e2129", "#e6e9ee", "#6ea8ff", "#7d8694"),
}

WIDTH, ROW, BAR, SIZE = 600, 25, 13, 15  # px
LEFT, RIGHT, TOP = 152, 184, 58  # space for labels, for figures, and for the heading


def errors(source: Source) -> dict[str, Error]:
    """The figures of a set by predictor, in the order of the bars.  Raises KeyError if the file lacks one."""
    table = json.loads((ROOT / "docs/figures" / source.file).read_text(encoding="utf-8"))
    rows = [dict(zip((each.lstrip(">") for each in table["columns"]), row, strict=True)) for row in table["rows"]]
    of = {row["predictor"]: row for row in rows if row["job"] == source.job}
    return {
        name: Error(row["mean ± sd %"].split(" ")[0], row["median %"], row["answered"], row["refused"])
        for name, row in ((each, of[each]) for each in PREDICTORS)
    }


def chart(sets: Mapping[Source, Mapping[str, Error]], colours: Colours) -> str:
    """An SVG with a group of bars for each set; the length of a bar is the mean error."""
    scale = (WIDTH - LEFT - RIGHT) / max(float(each.mean) for of in sets.values() for each in of.values())
    parts, y = [], TOP
    for source, of in sets.items():
        parts.append(_text(12, y, f"{source.title}: {_counts(of)}", colours.text))
        for name, error in of.items():
            y += ROW
            parts += _bar(y, name, error, scale, colours)
        y += ROW + 14
    height = y - 20
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
            f' role="img" aria-labelledby="title" font-family="system-ui, sans-serif" font-size="{SIZE}">',
            f'<title id="title">{escape(f"{HEADING}. {in_words(sets)}")}</title>',
            f'<rect width="{WIDTH}" height="{height}" fill="{colours.ground}"/>',
            _text(12, 26, HEADING, colours.text, "bold"),
            *parts,
            "</svg>",
            "",
        ]
    )


def in_words(sets: Mapping[Source, Mapping[str, Error]]) -> str:
    """The figures of the bars."""
    return " ".join(
        f"{source.title}: " + ", ".join(f"{PREDICTORS[name]} {each.mean} %" for name, each in of.items()) + "."
        for source, of in sets.items()
    )


def shown(sets: Mapping[Source, Mapping[str, Error]]) -> list[str]:
    """The chart in README.md, with its figures for readers who do not see it."""
    return [
        "<picture>",
        f'  <source media="(prefers-color-scheme: dark)" srcset="{PICTURES}/public-reruns-dark.svg">',
        f'  <img alt="{escape(f"{HEADING}. {in_words(sets)}")}" src="{PICTURES}/public-reruns-light.svg">',
        "</picture>",
    ]


def _counts(of: Mapping[str, Error]) -> str:
    ours = of["CrystalPerf"]
    return f"{ours.answered} predictions" + (f", {ours.refused} refused" if ours.refused else "")


def _bar(y: int, name: str, error: Error, scale: float, colours: Colours) -> Iterator[str]:
    is_ours = name == "CrystalPerf"
    weight = "bold" if is_ours else "normal"
    length = float(error.mean) * scale
    yield _text(LEFT - 8, y, PREDICTORS[name], colours.text, weight, "end")
    fill = colours.ours if is_ours else colours.others
    yield f'<rect x="{LEFT}" y="{y - BAR + 1}" width="{length:.1f}" height="{BAR}" fill="{fill}"/>'
    yield _text(round(LEFT + length + 8), y, f"{error.mean} % (median {error.median})", colours.text, weight)


def _text(x: int, y: int, text: str, colour: str, weight: str = "normal", anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" fill="{colour}" font-weight="{weight}" text-anchor="{anchor}">{escape(text)}</text>'


def main() -> int:
    """Draw the chart again."""
    sets = {each: errors(each) for each in SOURCES}
    for scheme, colours in SCHEMES.items():
        place = ROOT / PICTURES / f"public-reruns-{scheme}.svg"
        place.write_text(chart(sets, colours), encoding="utf-8")
        print(place.relative_to(ROOT))
    put(README, MARK, shown(sets))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
