"""Random damage to inputs, as disks, networks, writers and people cause it in logs and recordings.

Every function takes the random generator first, so that a seed repeats the damage exactly.  It returns the damaged
input and a short description of the damage.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

import cramjam
import zstandard

from lab.damage.messages import damaged_message

Bytes = Callable[[Random, bytes], bytes]

_NUMBERS = (0, -1, 1.5, 1e30, -1e300, 2**31, 2**53 + 1, 2**63, 10**30, float("nan"), float("inf"))
_TEXTS = ("", "x", "NaN", "-1", "1e999", "\u2028", "\ud800", "a" * 5000, "\x00\x1b[31m", "null", "../../x", "=1+1")
_WINDOW = 600  # lines kept of a long log, in addition to its first and last ones


# Bytes ------------------------------------------------------------------------------------------------------------


def cut(random: Random, data: bytes) -> bytes:
    """The file ends early."""
    return data[: random.randrange(len(data) + 1)]


def flip(random: Random, data: bytes) -> bytes:
    """One to fifty bits are flipped."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 5, 50))):
        changed[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(changed)


def overwrite(random: Random, data: bytes) -> bytes:
    """A range of bytes is all zeros, all ones, very long integers, or noise."""
    length = random.choice((1, 2, 4, 8, 9, 16, 512, 4096))
    place = random.randrange(len(data))
    filling = random.choice((b"\0", b"\xff", b"\x80", b"\x7f", b"\x01", None))
    noise = random.randbytes(length) if filling is None else filling * length
    return data[:place] + noise + data[place + length :]


def delete(random: Random, data: bytes) -> bytes:
    """A range of bytes is missing."""
    place = random.randrange(len(data))
    return data[:place] + data[place + random.choice((1, 3, 64, 4096, len(data) // 3 + 1)) :]


def duplicate(random: Random, data: bytes) -> bytes:
    """A range of bytes is repeated."""
    place = random.randrange(len(data))
    length = random.choice((1, 8, 512, 4096, 65536))
    return data[: place + length] + data[place:]


def swap(random: Random, data: bytes) -> bytes:
    """Two adjacent blocks are swapped."""
    length = random.choice((8, 512, 4096))
    place = random.randrange(len(data))
    one, two = data[place : place + length], data[place + length : place + 2 * length]
    return data[:place] + two + one + data[place + 2 * length :]


BYTES: tuple[Bytes, ...] = (cut, flip, flip, overwrite, delete, duplicate, swap)


def damaged(random: Random, data: bytes) -> tuple[bytes, str]:
    """One to three kinds of damage to some bytes."""
    done = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        if not data:
            break
        kind = random.choice(BYTES)
        data = kind(random, data)
        done.append(kind.__name__)
    return data, ", ".join(done)


# Event logs -------------------------------------------------------------------------------------------------------


def excerpt(random: Random, lines: list[bytes]) -> list[bytes]:
    """A log short enough to read quickly: its first lines, some from the middle, its last ones."""
    if len(lines) <= _WINDOW:
        return lines
    place = random.randrange(20, len(lines) - 10)
    return lines[:20] + lines[place : place + _WINDOW] + lines[max(place + _WINDOW, len(lines) - 5) :]


def change_fields(random: Random, lines: list[bytes]) -> list[bytes]:
    """A field of some events is missing, null, of another type, or has an invalid value."""
    changed = list(lines)
    kinds: dict[bytes, list[int]] = {}
    for number, line in enumerate(lines):
        kinds.setdefault(line[:60], []).append(number)  # a rare kind of event is as likely as a common one
    for _ in range(random.choice((1, 3, 20))):
        number = random.choice(kinds[random.choice(list(kinds))])
        try:
            event = json.loads(changed[number])
        except (ValueError, RecursionError):
            continue
        holder, key = _place(random, event)
        if holder is None:
            continue
        if random.random() < 0.2:
            del holder[key]
        else:
            holder[key] = _other_value(random, holder[key])
        changed[number] = _dumped(event)
    return changed


def _place(random: Random, value: Any) -> tuple[Any, Any]:
    """A nested field of a value: its container, and its key there."""
    found = _places(value)
    return random.choice(found) if found else (None, None)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """The first 2 000 nested fields of a value, each as its container and its key."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting and len(found) < 2000:
        each = waiting.pop()
        keys = list(each) if isinstance(each, dict) else list(range(len(each)))
        for key in keys:
            found.append((each, key))
            if isinstance(each[key], dict | list):
                waiting.append(each[key])
    return found


def _other_value(random: Random, value: Any) -> Any:
    choices: tuple[Any, ...] = (
        None,
        True,
        random.choice(_NUMBERS),
        random.choice(_TEXTS),
        str(value)[:1000],
        [value],
        {"Value": value},
        [],
        {},
    )
    if isinstance(value, int | float) and not isinstance(value, bool):
        choices += (-value, value + 0.5, value * 1000, value - 3_600_000, value + 3_600_000)
    return random.choice(choices)


def _dumped(event: Any) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode("utf-8", errors="replace")


def drop_events(random: Random, lines: list[bytes]) -> list[bytes]:
    """Events were lost: some of all, or every one of a kind."""
    if random.random() < 0.3:
        kind = random.choice(lines)[:60]
        return [line for line in lines if line[:60] != kind]
    share = random.choice((0.01, 0.1, 0.4, 0.9))
    return [line for line in lines if random.random() > share]


def repeat_events(random: Random, lines: list[bytes]) -> list[bytes]:
    """Events are repeated: some of them, or a whole range."""
    if random.random() < 0.5:
        place = random.randrange(len(lines))
        return lines[: place + 50] + lines[place:]
    return [each for line in lines for each in ([line, line] if random.random() < 0.1 else [line])]


def reorder_events(random: Random, lines: list[bytes]) -> list[bytes]:
    """Events in another order: a range of them, or all."""
    if random.random() < 0.2:
        return random.sample(lines, len(lines))
    place = random.randrange(len(lines))
    interval = lines[place : place + 50]
    return lines[:place] + random.sample(interval, len(interval)) + lines[place + 50 :]


def shift_times(random: Random, lines: list[bytes]) -> list[bytes]:
    """One executor's clock is wrong, or was changed while it ran."""
    by = random.choice((-3_600_000, 3_600_000, -1000, 10**13))
    executor = b'"Executor ID":"%d"' % random.randrange(4)
    changed = []
    for line in lines:
        if executor in line:
            try:
                event = json.loads(line)
                info = event["Task Info"]
                for key in random.choice((("Launch Time",), ("Finish Time",), ("Launch Time", "Finish Time"))):
                    info[key] += by
                line = _dumped(event)
            except (ValueError, KeyError, TypeError, RecursionError):
                pass
        changed.append(line)
    return changed


def nest(random: Random, lines: list[bytes]) -> list[bytes]:
    """An event is nested as deeply as plans that programs make are."""
    depth = random.choice((100, 1100, 20_000))
    place = random.randrange(len(lines))
    tree = b'{"nodeName":"Project","children":[' * depth + b"]}" * depth
    name = b"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"
    line = b'{"Event":"%s","executionId":%d,"sparkPlanInfo":%s}' % (name, random.randrange(3), tree)
    return [*lines[:place], line, *lines[place:]]


EVENTS: tuple[Callable[[Random, list[bytes]], list[bytes]], ...] = (
    change_fields,
    change_fields,
    change_fields,
    drop_events,
    repeat_events,
    reorder_events,
    shift_times,
    nest,
)


def damaged_log(random: Random, lines: list[bytes]) -> tuple[dict[str, bytes], str]:
    """A damaged event log: its files by name, and a description of the damage."""
    done = []
    lines = excerpt(random, lines)
    if random.random() < 0.75:
        for _ in range(random.choice((1, 1, 2))):
            kind = random.choice(EVENTS)
            lines = kind(random, lines) or lines[:1]
            done.append(kind.__name__)
    if random.random() < 0.1 and len(lines) > 4:
        return _rolled(random, lines, done)
    text = b"\n".join(lines) + random.choice((b"\n", b"\n", b"", b"\r\n"))
    name = random.choice(("log", "log", "application_1_0001", "x.jfr", "app-20260101000000-0000.inprogress"))
    if random.random() < 0.4:
        pack = random.choice((_zstd, _zstd_open, _gzip, _lz4, _snappy, _lzf))
        text = pack(text)
        done.append(pack.__name__.strip("_"))
    if not done or random.random() < 0.3:
        text, how = damaged(random, text)
        done.append(how)
    return {name: text}, ", ".join(done)


def _rolled(random: Random, lines: list[bytes], done: list[str]) -> tuple[dict[str, bytes], str]:
    """A rolled log: parts missing, out of order, repeated, or one of them compacted."""
    count = random.randrange(2, 5)
    size = len(lines) // count + 1
    files = {
        f"eventlog_v2_app-1/events_{number + 1}_app-1": b"\n".join(lines[number * size : (number + 1) * size]) + b"\n"
        for number in range(count)
    }
    names = list(files)
    chosen = random.choice(names)
    how = random.choice(("part missing", "part repeated", "part compacted", "part damaged"))
    if how == "part missing":
        del files[chosen]
    elif how == "part repeated":
        files[f"{chosen}.zstd"] = _zstd(files[chosen])
    elif how == "part compacted":
        files[f"{chosen}.compact"] = files[chosen]
    else:
        files[chosen], _ = damaged(random, files[chosen])
    return files, ", ".join([*done, how])


def _gzip(data: bytes) -> bytes:
    # gzip keeps the time of day, which would make the same seed give other bytes.
    return gzip.compress(data, 1, mtime=0)


def _zstd(text: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=1).compress(text)


def _zstd_open(text: bytes) -> bytes:
    """The file of a killed writer: the last frame has no end."""
    packer = zstandard.ZstdCompressor(level=1).compressobj()
    return packer.compress(text) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)


def _lz4(text: bytes) -> bytes:
    blocks = []
    for place in range(0, len(text), 1 << 15):
        block = text[place : place + (1 << 15)]
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        header = b"LZ4Block\x25" + len(packed).to_bytes(4, "little") + len(block).to_bytes(4, "little")
        blocks.append(header + zlib.crc32(block).to_bytes(4, "little") + packed)
    return b"".join(blocks) + b"LZ4Block\x15" + bytes(12)


def _snappy(text: bytes) -> bytes:
    blocks = [b"\x82SNAPPY\x00" + (1).to_bytes(4, "big") * 2]
    for place in range(0, len(text), 1 << 15):
        packed = bytes(cramjam.snappy.compress_raw(text[place : place + (1 << 15)]))
        blocks.append(len(packed).to_bytes(4, "big") + packed)
    return b"".join(blocks)


def _lzf(text: bytes) -> bytes:
    """Uncompressed chunks, which the compressor writes if compression gains nothing."""
    pieces = (text[place : place + 0xFFFF] for place in range(0, len(text), 0xFFFF))
    return b"".join(b"ZV\x00" + len(piece).to_bytes(2, "big") + piece for piece in pieces)


# Archives -----------------------------------------------------------------------------------------------------------


def damaged_document(random: Random, data: bytes) -> tuple[dict[str, bytes], str]:
    """A damaged log that is one JSON value: the file's name and content, and a description of the damage."""
    data, how = changed_document(random, data)
    name = random.choice(("archive.json", "5671dc0f78ac6176e6d9383afcac1aca", "job.log", "trace.pt.trace.json"))
    return {name: data}, how


def changed_document(random: Random, data: bytes) -> tuple[bytes, str]:
    """A damaged JSON value, and a description of the damage."""
    done = []
    document = _parsed(data)  # None where other damage came before
    if random.random() < 0.85 and document is not None:
        for _ in range(random.choice((1, 3, 20))):
            done.append(_change_document(random, document))
        data = _dumped(document)
    return _packed_or_damaged(random, data, done)


def _packed_or_damaged(random: Random, data: bytes, done: list[str]) -> tuple[bytes, str]:
    """Sometimes compressed; sometimes, and if there is no other damage, with damaged bytes; and a description."""
    if random.random() < 0.15:
        data = random.choice((_gzip, _zstd))(data)
        done.append("packed")
    if not done or random.random() < 0.2:
        data, how = damaged(random, data)
        done.append(how)
    return data, ", ".join(sorted(set(done)))


# Runs of several files ----------------------------------------------------------------------------------------------


def damaged_folder(random: Random, files: dict[str, bytes]) -> tuple[dict[str, bytes], str]:
    """The files of one run, one of which is damaged according to its format, missing or repeated."""
    changed, done = dict(files), []
    for _ in range(random.choice((1, 1, 2))):
        name = random.choice(list(changed))
        if len(changed) > 1 and random.random() < 0.1:
            del changed[name]
            done.append("file missing")
        elif random.random() < 0.05:
            changed[f"again-{name}"] = changed[name]
            done.append("file twice")
        else:
            changed[name], how = _damaged_file(random, name, changed[name])
            done.append(how)
    return changed, ", ".join(sorted(set(done)))


def _damaged_file(random: Random, name: str, data: bytes) -> tuple[bytes, str]:
    if name.endswith(".series.gz"):
        return _damaged_series(random, data)
    if data.lstrip()[:1] in (b"{", b"["):
        return changed_document(random, data)
    done = []
    for _ in range(random.choice((0, 1, 1, 3))):
        data, how = damaged_message(random, data)
        done.append(how)
    if not done or random.random() < 0.1:
        data, how = damaged(random, data)
        done.append(how)
    return data, ", ".join(done)


def _damaged_series(random: Random, data: bytes) -> tuple[bytes, str]:
    """Lines of metrics, changed as events of logs are, in one gzip member or two."""
    lines, done = data.rstrip(b"\n").split(b"\n"), []
    for _ in range(random.choice((0, 1, 1, 2))):
        kind = random.choice((change_fields, change_fields, drop_events, repeat_events, reorder_events))
        lines = kind(random, lines) or lines[:1]
        done.append(kind.__name__)
    place = random.randrange(len(lines) + 1)
    data = b"".join(_gzip(b"\n".join(part) + b"\n") for part in (lines[:place], lines[place:]) if part)
    if not done or random.random() < 0.2:
        data, how = damaged(random, data)
        done.append(how)
    return data, ", ".join(done)


def _change_document(random: Random, document: Any) -> str:
    """Change one field of a value; in a text that is JSON itself, as in pages of an archive, a nested field."""
    places = _places(document)
    pages = [(holder, key) for holder, key in places if isinstance(holder[key], str) and holder[key][:1] in ("{", "[")]
    if not places:
        return "nothing"
    holder, key = random.choice(pages if pages and random.random() < 0.95 else places)
    value = holder[key]
    if (holder, key) in pages and (page := _parsed(value)):
        how = _change_document(random, page)
        holder[key] = _dumped(page).decode()
        return how
    if isinstance(value, list) and value and random.random() < 0.7:
        kind = random.choice((_lose, _repeat, _reorder))
        holder[key] = kind(random, value)
        return kind.__name__.strip("_")
    if random.random() < 0.2:
        del holder[key]
        return "field gone"
    holder[key] = _other_value(random, value)
    return "field changed"


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _lose(random: Random, values: list[Any]) -> list[Any]:
    share = random.choice((0.1, 0.5, 0.9))
    return [each for each in values if random.random() > share]


def _repeat(random: Random, values: list[Any]) -> list[Any]:
    return [*values, *random.choices(values, k=random.choice((1, len(values))))]


def _reorder(random: Random, values: list[Any]) -> list[Any]:
    return random.sample(values, len(values))


# Stacks -------------------------------------------------------------------------------------------------------------

_COUNTS = (b"", b"0", b"-1", b"1.5", b"1e9", b"9" * 18, b"9" * 19, b"nan", b"1 2", b"\xd9\xa1")
_LONGEST_STACK = 1 << 20
"""Maximum bytes of a text; longer ones test size, not damage."""
_FRAMES = (
    b"",
    b"[tid=1]",
    b"a.b.c_[j]",
    b"x" * 70_000,
    b"$anonfun$" * 500,
    b"\xff\xfe",
    b"java/lang/Thread.run:99999999",
)


def damaged_stacks(random: Random, data: bytes) -> tuple[bytes, str]:
    """Damaged collapsed stacks: invalid frames and counts, too deep stacks, or changed bytes."""
    done = []
    if random.random() < 0.7:
        lines = data.split(b"\n")
        for _ in range(random.choice((1, 5, 50))):
            number = random.randrange(len(lines))
            stack, _, count = lines[number].rpartition(b" ")
            frames = stack.split(b";")
            kind = random.choice(("count", "frame", "frames lost", "deep", "line lost"))
            if kind == "count":
                count = random.choice(_COUNTS)
            elif kind == "frame":
                frames[random.randrange(len(frames))] = random.choice(_FRAMES)
            elif kind == "frames lost":
                frames = random.sample(frames, random.randrange(len(frames) + 1))
            elif kind == "deep":
                frames = (frames * 3000)[: random.choice((2047, 2049, 6000))]
            text = b";".join(frames)[:_LONGEST_STACK] + b" " + count
            lines[number] = b"" if kind == "line lost" else text
            done.append(kind)
        data = b"\n".join(lines)
    return _packed_or_damaged(random, data, done)


# Recordings -------------------------------------------------------------------------------------------------------


def damaged_recording(random: Random, data: bytes, other: bytes) -> tuple[bytes, str]:
    """A recording with damage anywhere, in its header or in its type descriptions, or joined with another."""
    kind = random.choice(("anywhere", "anywhere", "anywhere", "header", "types", "types", "joined", "gzip"))
    if kind == "header":
        changed = bytearray(data)
        for _ in range(random.choice((1, 2, 4))):
            place = random.randrange(4, min(68, len(data)))
            changed[place] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
        return bytes(changed), "header"
    if kind == "types":
        # The header has the offset of the type descriptions; constant pools precede them.
        begin = min(max(int.from_bytes(data[24:32], "big"), 68), max(len(data) - 1, 68))
        interval = slice(max(begin - random.choice((0, 0, 20_000)), 68), begin + 20_000)
        part = data[interval]
        if part:
            part, how = damaged(random, part)
            return data[: interval.start] + part + data[interval.stop :], f"types: {how}"
    if kind == "joined":
        data = data + other if random.random() < 0.5 else data + data
        if random.random() < 0.5:
            return data, kind
    if kind == "gzip":
        packed, how = damaged(random, _gzip(data))
        return packed, f"gzip: {how}"
    data, how = damaged(random, data)
    return data, f"{kind}: {how}"
