"""Sentences of recommendations."""

from __future__ import annotations

from crystalperf.indexes.regex import regex
from crystalperf.indexes.resources import CPU
from crystalperf.query.results.findings import AtEnd, AtStart, Driver, NoScope, NoWorker
from crystalperf.query.results.recommendations import (
    ChangeSetting,
    FasterDevice,
    FixFailure,
    FollowAdvice,
    LessMemory,
    MoreMemory,
    MoreWorkers,
    RaiseParallelism,
    Recommendation,
    RecordSamples,
    SettingChange,
    Value,
)
from crystalperf.query.results.words import Words
from crystalperf.query.text.figures import counted_digits
from crystalperf.query.text.findings import advice_text, explained
from crystalperf.query.text.sentences import CORE, text_of


def value_text(value: Value) -> str:
    """A value as a configuration writes it: `64`, `4g`, `true`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def setting_text(change: SettingChange) -> str:
    """A setting with its current and its new value."""
    default = " (the default)" if change.is_default else ""
    return f"`{change.name}` {value_text(change.before)}{default} → {value_text(change.after)}"


_FOLDERS = regex(r"(?<= at )/.*/")


def recommendation_text(found: Recommendation, words: Words) -> str:
    """A recommendation as sentences: what to change, and where in the user's program, if the first does not say it."""
    text = text_of(found, words)
    site = call_site(found.call_site or "")
    return f"{text}. In your program: {site}." if site and site not in text else f"{text}."


def call_site(text: str) -> str:
    """A place in the user's program without the folders of its file: `collect at job.py:12`."""
    return _FOLDERS.sub("", text, count=1)


def capitalised(text: str) -> str:
    """The text with an uppercase first letter."""
    return f"{text[:1].upper()}{text[1:]}"


def times(ratio: float) -> str:
    """A ratio in words: `twice`, `1.5 times`."""
    return "twice" if ratio == 2 else f"{ratio:g} times"


@CORE.of(ChangeSetting)
def change_setting(found: ChangeSetting, _words: Words) -> str:
    return ", ".join(map(setting_text, found.settings))


@CORE.of(MoreMemory)
def more_memory(found: MoreMemory, words: Words) -> str:
    return f"Give each {words.vocabulary.worker} {times(found.ratio)} the memory"


@CORE.of(LessMemory)
def less_memory(found: LessMemory, words: Words) -> str:
    return f"Give each {words.vocabulary.worker} less memory, which frees {memory_hours(found.freed_byte_ms)}"


def memory_hours(byte_ms: float) -> str:
    """Memory times time: `12.3 GB·h`, `4.2 GB·min`."""
    hours = byte_ms / 1e9 / 3.6e6
    return f"{hours:.1f} GB·h" if hours >= 1 else f"{60 * hours:.1f} GB·min"


@CORE.of(MoreWorkers)
def more_workers(found: MoreWorkers, words: Words) -> str:
    return f"Run on {times(found.ratio)} the {words.vocabulary.counted}"


@CORE.of(FasterDevice)
def faster_device(found: FasterDevice, words: Words) -> str:
    resource = next(each for each in words.resources if each.name == found.resource)
    if found.resource == CPU:
        return "Use a CPU that is a quarter faster: a faster clock or a newer generation"
    if resource.unit == "speed":
        return f"Use a faster {resource.device}"
    return f"Use machines with {times(found.ratio)} the {resource.device} bandwidth"


@CORE.of(RaiseParallelism)
def raise_parallelism(found: RaiseParallelism, words: Words) -> str:
    if found.rate_per_s is not None:
        before, after = found.rate_per_s
        which = f"{found.name} ({found.stage})" if found.name else found.stage
        rate = f"at least {counted_digits(after)}" if found.at_least else f"about {counted_digits(after)}"
        within = ""
        if found.rate_range_per_s is not None and not found.at_least:
            low, high = found.rate_range_per_s
            within = f"; 90 % range: {counted_digits(low)} to {counted_digits(high)}"
        return (
            f"{which} {found.before} → {found.after} {words.vocabulary.tasks}: {rate} records/s (recorded:"
            f" {counted_digits(before)}{within})"
        )
    return (
        f"Twice the {words.vocabulary.tasks} of {found.stage}, {found.before} → {found.after}: it is busy"
        f" {100 * found.busy_share:.0f} % of the time"
    )


@CORE.of(FixFailure)
def fix_failure(found: FixFailure, _words: Words) -> str:
    return f"Fix the first failure: {found.failed}: {explained(found.error)}"


@CORE.of(FollowAdvice)
def follow_advice(found: FollowAdvice, words: Words) -> str:
    finding = found.finding
    if isinstance(finding, NoScope | AtStart | AtEnd | Driver | NoWorker) and finding.advice is not None:
        return capitalised(text_of(finding.advice, words))
    seen = text_of(finding, words).partition("; ")[0]
    return f"{capitalised(advice_text(finding, words))} ({seen})"


@CORE.of(RecordSamples)
def record_samples(found: RecordSamples, _words: Words) -> str:
    return f"Record stack samples in the next run: {found.framework} does not measure where the time went"
