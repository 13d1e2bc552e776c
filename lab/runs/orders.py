"""Orders of a shop as text, like a database dump for Hadoop: one gzip file per part, one line per order.

The text uses many European alphabets, because Java has a fast path for pure ASCII and decodes other text byte by byte.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from pathlib import Path

PARTS = 16
PART_BYTES = 64_000_000
_BLOCK_ROWS = 10_000
_SEED = 42

_FIRST = (
    "Anna Björn Chloé Дмитрий Ελένη François Grażyna Håkon İbrahim João Jürgen Катерина Łukasz Μαρία Núria Øyvind "
    "Ольга Père Sören Zoë José Maria Peter Susan"
)
_LAST = (
    "Ångström Bączek Çelik Dvořák Ерёмин Fernández Γεωργίου Håland Иванова Jiménez Kowalski Lindqvist Müller Nguyễn "
    "O'Brien Παππάς Říha Şahin Schäfer Smith Тарасов Vögeli Wiśniewski Žižka"
)
_STREETS = [
    "Hauptstraße",
    "Avenida de la Constitución",
    "улица Гагарина",
    "Rue de l'Église",
    "Λεωφόρος Αλεξάνδρας",
    "ulica Świętokrzyska",
    "Main Street",
    "Kungsträdgårdsgatan",
    "Şehit Muhtar Caddesi",
    "Näsilinnankatu",
]
_TOWNS = "Zürich Besançon Санкт-Петербург Αθήνα Kraków Göteborg İstanbul Málaga London Liège Košice Jyväskylä"
_ITEMS = [
    "bicycle",
    "кофеварка",
    "chaise pliante",
    "Gießkanne",
    "ποδήλατο",
    "czajnik elektryczny",
    "saç kurutma makinesi",
    "lámpara de pie",
    "kuchyňská váha",
    "książka kucharska",
]
_STATES = "SHIPPED PENDING RETURNED CANCELLED DELIVERED"
_NOTES = (
    "deliver to the neighbour if nobody is at home",
    "пожалуйста, позвоните за час до доставки",
    "bitte bei der Pförtnerloge abgeben",
    "παρακαλώ αφήστε το δέμα στη ρεσεψιόν",
    "merci de livrer après dix-huit heures",
    "proszę zostawić paczkę u sąsiada",
    "por favor, llamar antes de la entrega",
    "",
)


def write_orders(folder: Path, part_bytes: int = PART_BYTES, parts: int = PARTS) -> None:
    """Write part-m-00000.gz and so on, each with `part_bytes` of UTF-8 text, and a few more to complete its last line.

    Text and compressed bytes are always the same (with the same zlib).
    """
    blocks = order_blocks()
    for part in range(parts):
        # The header has no time and no file name.
        with (
            (folder / f"part-m-{part:05d}.gz").open("wb") as stream,
            gzip.GzipFile("", "wb", compresslevel=6, fileobj=stream, mtime=0) as archive,
        ):
            missing = part_bytes
            while missing > 0:
                block = next(blocks)
                if len(block) > missing:
                    block = block[: block.index(b"\n", missing - 1) + 1]
                archive.write(block)
                missing -= len(block)


def order_blocks() -> Iterator[bytes]:
    """An endless sequence of orders, always the same, as UTF-8 lines in blocks of ``_BLOCK_ROWS``."""
    rng = random.Random(_SEED)
    first, last, towns, states = (words.split() for words in (_FIRST, _LAST, _TOWNS, _STATES))
    customers = [
        f"{rng.choice(first)} {rng.choice(last)},{rng.choice(_STREETS)} {rng.randrange(1, 200)},{rng.choice(towns)}"
        for _ in range(20_000)
    ]
    times = [
        f"2017-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d} "
        f"{rng.randrange(24):02d}:{rng.randrange(60):02d}:{rng.randrange(60):02d}"
        for _ in range(20_000)
    ]
    sales = [
        f"{rng.choice(_ITEMS)},{rng.randrange(1, 9)},{rng.randrange(100, 100_000) / 100:.2f},"
        f"{rng.choice(states)},{rng.choice(_NOTES)}"
        for _ in range(20_000)
    ]
    order = 0
    while True:
        columns = (rng.choices(column, k=_BLOCK_ROWS) for column in (times, customers, sales))
        rows = enumerate(zip(*columns, strict=True), order)
        yield "".join(f"{number},{time},{customer},{sale}\n" for number, (time, customer, sale) in rows).encode()
        order += _BLOCK_ROWS
