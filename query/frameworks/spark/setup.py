"""The settings that make a Spark job write a log and samples.

The text is a fragment of spark-defaults.conf with prose as comments.  lab/runs/samplers.py records with the same flags
(a test compares them), so that the printed settings are tested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from crystalperf.indexes.errors import SettingError
from crystalperf.query.frameworks import Job, Setup
from crystalperf.query.frameworks.spark.deployments import NOT_TRIED, PLACES, Place, written
from crystalperf.query.frameworks.spark.needs import POLLING
from crystalperf.query.frameworks.spark.settings import version_number
from crystalperf.query.recordings.flags import SAMPLE_MS, STACK_DEPTH, jfr_flag


def executor_file(folder: str) -> str:
    """The recording of an executor; Spark inserts the ids, on every cluster manager."""
    return f"{folder}/crystalperf-{{{{APP_ID}}}}-executor-{{{{EXECUTOR_ID}}}}.jfr"


def driver_place(folder: str) -> str:
    """The place of the driver's recording: a folder, in which each JVM chooses a name (DRIVER_FILES).

    Spark inserts no id into the driver's flags: with a file's name, the next driver would overwrite it.
    """
    return folder or "/"


DRIVER_FILES = "hotspot-pid-*.jfr"
"""Names that JVMs choose for recordings in a folder, with process id and time."""


def old_driver_file(folder: str) -> str:
    """The recording of a driver by Java 8 or 11, which need a file's name."""
    return f"{folder}/crystalperf-driver.jfr"


def old_jfr_flag(file: str) -> str:
    """The same for Java 8 and 11, which have only predefined sets of settings; waits below 20 ms are not recorded."""
    return (
        f"-XX:FlightRecorderOptions=stackdepth={STACK_DEPTH} -XX:StartFlightRecording=settings=profile,"
        f"filename={file},dumponexit=true,maxsize=0"
    )


def async_flag(file: str) -> str:
    """async-profiler in wall-clock mode, which samples all threads equally, including waiting ones."""
    return f"-agentpath:/path/to/libasyncProfiler.so=start,event=wall,interval={SAMPLE_MS}ms,jfr,file={file}"


def settings(folder: str, place: str = "plain") -> Mapping[str, str]:
    """Spark's settings for a log and samples, from Java 17 on."""
    return {**_log_settings(folder, place), **_sample_settings(folder), **PLACES[place].more(folder)}


def _log_settings(folder: str, place: str) -> Mapping[str, str]:
    """The log, and the memory of executors in it: by default Spark looks only once in 10 s."""
    where = PLACES[place].log_dir(folder)
    log = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": where} if where else {}
    return {**log, POLLING: "1s"}


def _sample_settings(folder: str) -> Mapping[str, str]:
    return {
        "spark.executor.extraJavaOptions": jfr_flag(executor_file(folder)),
        "spark.driver.extraJavaOptions": jfr_flag(driver_place(folder)),
    }


def java_11_settings(folder: str) -> Mapping[str, str]:
    """The settings of sampling for Java 8 and 11."""
    return {
        "spark.executor.extraJavaOptions": old_jfr_flag(executor_file(folder)),
        "spark.driver.extraJavaOptions": old_jfr_flag(old_driver_file(folder)),
    }


def async_settings(folder: str) -> Mapping[str, str]:
    """The settings of sampling with async-profiler."""
    return {
        "spark.executor.extraJavaOptions": async_flag(executor_file(folder)),
        "spark.driver.extraJavaOptions": async_flag(f"{folder}/crystalperf-driver-%p.jfr"),
    }


def analyze_command(log: str) -> str:
    """The command after the job, with log and recordings in the working folder."""
    return f"crystalperf analyze {log} crystalperf-*.jfr {DRIVER_FILES}"


def spark_text(job: Job) -> str:
    """The fragment of spark-defaults.conf."""
    word, place, version = _asked(job)
    folder = job.folder
    others = ", ".join(each for each in PLACES if each != word)
    logs = written(version)
    pasted = (f"{each.versions + ':':18s}{analyze_command(place.here(folder, each.name))}" for each in logs)
    sections = (
        (
            f"Record a job on {place.title} for CrystalPerf: Spark's event log, and stack",
            "samples of its JVMs.",
            *(() if place.is_tried else (NOT_TRIED,)),
            *place.given,
            "If you already set extraJavaOptions, put both values in one line, because Spark",
            "uses only the last one.",
            f"For another deployment, use --on {others}",
        ),
        ("", "1  Turn on the event log. The driver writes it.", *_indented(place.log)),
        _log_settings(folder, word),
        (
            "",
            f"2  Record samples with Java Flight Recorder (Java 17 or later). Create {folder or '/'} on",
            "   every node first; otherwise the executors do not start. If a JVM is killed, the",
            "   last part of its recording is missing.",
        ),
        _sample_settings(folder),
        place.more(folder),
        ("", "   For Java 8 and 11, use these (they record waits from 20 ms on):", *_pairs(java_11_settings(folder))),
        (
            "",
            "   Or use async-profiler in wall-clock mode, if its library is on every node. It",
            "   samples all threads, also waiting ones, at slightly more cost:",
            *_pairs(async_settings(folder)),
        ),
        (
            "",
            "3  Fetch the files when the job is done.",
            *_indented(
                (
                    f"log        {place.stored(folder)}/LOG, where LOG is:",
                    *(f"  {each.versions + ':':18s}{each.name}, {each.what}" for each in logs),
                    "  On YARN in cluster mode, the attempt number follows the id: APP_ID_1.",
                    f"executors  {executor_file(folder)}",
                    f"driver     {folder}/{DRIVER_FILES}, a file for each application",
                    *place.lands(folder),
                    "Copy them:",
                    *(f"  {each}" for each in place.fetch(folder)),
                    "Then run:",
                    *(f"  {each}" for each in pasted),
                )
            ),
        ),
    )
    return "".join(
        f"{line}\n"
        for section in sections
        for line in (_pairs(section) if isinstance(section, Mapping) else map(_comment, section))
    )


def facts(job: Job) -> dict[str, Any]:
    """All settings by name, and the paths of the files."""
    word, place, version = _asked(job)
    folder = job.folder
    return {
        "place": word,
        "tried": place.is_tried,
        "settings": settings(folder, word),
        "settings_java_8_and_11": java_11_settings(folder),
        "settings_async_profiler": async_settings(folder),
        "files": {
            "event_log": [f"{place.stored(folder)}/{each.name}" for each in written(version)],
            "executors": executor_file(folder).replace("{{APP_ID}}", "*").replace("{{EXECUTOR_ID}}", "*"),
            "driver": f"{folder}/{DRIVER_FILES}",
        },
        "fetch": list(place.fetch(folder)),
        "analyze": [analyze_command(place.here(folder, each.name)) for each in written(version)],
    }


def _asked(job: Job) -> tuple[str, Place, str | None]:
    """The deployment of the job, and Spark's version; raises SettingError for an invalid one."""
    version = version_number(job.version)
    if job.version and version is None:
        raise SettingError(f"'{job.version}' is not a version of Spark; write it like 3.5.1")
    word = job.place or next(iter(PLACES))
    return word, PLACES[word], version


def _comment(line: str) -> str:
    return f"# {line}" if line else ""


def _indented(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"   {each}" for each in lines)


def _pairs(values: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{key} {value}" for key, value in values.items())


SETUP = Setup(spark_text, facts, {word: each.title for word, each in PLACES.items()})
