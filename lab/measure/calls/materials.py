"""What calls work on: bytes, texts and records, and files and folders that hold them."""

from __future__ import annotations

import inspect
import io
import json
import os
import random
import shutil
import tarfile
import wave
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

MIB = 1 << 20
BIG = 32 * MIB
MANY = 300
FOLDERS = int(os.environ.get("CRYSTALPERF_MEASURE_FOLDERS", "300"))
"""How many folders the small files lie in, by default one each: a file system reads a folder's inodes ahead, so that of
neighbours only the first is cold."""


def noise(count: int) -> bytes:
    """Bytes that do not compress, the same each time."""
    return random.Random(1).randbytes(count)


def prose(count: int) -> bytes:
    """Bytes that compress as text does."""
    chance = random.Random(2)
    words = [bytes(chance.choices(b"abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(2000)]
    text = b" ".join(chance.choices(words, k=count // 6))
    return (text + b"\n")[:count]


TEXT = prose(300_000).decode()
RECORDS = [{"name": f"n{number}", "value": number * 1.5, "tags": ["a", "b"]} for number in range(3000)]
JSON_TEXT = json.dumps(RECORDS)
INI = "\n".join(f"[s{number}]\n" + "\n".join(f"k{key} = v{key}" for key in range(10)) for number in range(300))
CODE = inspect.getsource(shutil)
XML = "<r>" + "".join(f"<a id='{number}'>text<b/></a>" for number in range(8000)) + "</r>"
MESSAGE = "Subject: a\nFrom: a@b\nTo: c@d\n\n" + "a line of text\n" * 400
DATA = noise(BIG)
BODY = noise(2_000_000)


def one(size: int = BIG, name: str = "a") -> Callable[[Path], Path]:
    """Makes a file of noise."""

    def make(folder: Path) -> Path:
        (folder / name).write_bytes(noise(size))
        return folder / name

    return make


def many(folder: Path) -> list[Path]:
    """Small files in folders."""
    paths = [folder / f"d{number % FOLDERS}" / f"file{number}.txt" for number in range(MANY)]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(noise(3000))
    return paths


def fresh(folder: Path) -> list[Path]:
    """Paths that do not exist yet."""
    return [folder / f"new{number}" for number in range(MANY)]


def new_folder(path: Path) -> Path:
    path.mkdir()
    return path


def text_file(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def wave_file(path: Path, count: int) -> Path:
    with wave.open(str(path), "wb") as its:
        its.setnchannels(1)
        its.setsampwidth(2)
        its.setframerate(8000)
        its.writeframes(b"ab" * count)
    return path


def zipped(kind: int = zipfile.ZIP_STORED, text: bytes = b"") -> Callable[[Path], Path]:
    """Makes an archive of eight files: of noise, or of a text."""

    def make(folder: Path) -> Path:
        with zipfile.ZipFile(folder / "a.zip", "w", kind) as archive:
            for number in range(8):
                archive.writestr(f"m{number}", text or noise(2 * MIB))
        return folder / "a.zip"

    return make


def tarred(folder: Path) -> Path:
    with tarfile.open(folder / "a.tar", "w") as archive:
        for number in range(8):
            info = tarfile.TarInfo(f"m{number}")
            info.size = 4 * MIB
            archive.addfile(info, io.BytesIO(noise(4 * MIB)))
    return folder / "a.tar"


def with_file(path: Any, use: Callable[[Any], Any]) -> Any:
    with open(path, "rb") as opened_file:
        return use(opened_file)


def within(its: Any, use: Callable[[Any], Any]) -> Any:
    with its as entered:
        return use(entered)
