"""Deployments of Spark: how to set a job's settings, where log and recordings are written, how to fetch them.

The text is in comments of setup.py's output, in our words.  What comes from a vendor's documentation and was never
tried says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Lines = tuple[str, ...]

NOT_TRIED = "From the vendor's documentation, not tried:"


@dataclass(frozen=True)
class Place:
    """One deployment, in lines of prose for a folder of recordings.

    `log_dir` is the value of spark.eventLog.dir, '' if the deployment sets it; `stored` is that folder's name in a
    shell, `fetch` copies a log of that name from it, and `here` is the log's name where it is analysed.
    """

    title: str
    given: Lines
    log_dir: Callable[[str], str]
    stored: Callable[[str], str]
    log: Lines
    lands: Callable[[str], Lines]
    fetch: Callable[[str], Lines]
    more: Callable[[str], Mapping[str, str]] = lambda _folder: {}
    here: Callable[[str, str], str] = lambda _folder, log: log
    is_tried: bool = True


def _volumes(folder: str) -> Mapping[str, str]:
    """A volume that outlives the pods, mounted at the folder of recordings."""
    prefix = "spark.kubernetes.{role}.volumes.persistentVolumeClaim.crystalperf"
    found = {}
    for role in ("executor", "driver"):
        name = prefix.format(role=role)
        found[f"{name}.mount.path"] = folder or "/"
        found[f"{name}.options.claimName"] = "YOUR-CLAIM"
    return found


def _nodes(folder: str) -> Lines:
    return (
        f"Every executor records to {folder or '/'} on its node, the driver on the node of",
        "the application master (cluster mode) or where spark-submit runs. YARN",
        "clears its containers' own folders, so leave the absolute path.",
    )


_APPEND: Lines = (
    "Append this to conf/spark-defaults.conf, or give single lines to spark-submit",
    "as --conf 'KEY=VALUE'.",
)

PLACES: Mapping[str, Place] = {
    "plain": Place(
        title="standalone, or local[N]",
        given=_APPEND,
        log_dir=lambda folder: f"file://{folder or '/'}",
        stored=lambda folder: folder,
        log=("The folder must exist where the driver runs, or Spark does not start.",),
        lands=lambda folder: (
            f"Every executor records to {folder or '/'} on its worker's machine, the driver where",
            "spark-submit runs. With local[N] the driver's recording has the tasks too.",
        ),
        fetch=lambda folder: (f"scp 'WORKER:{folder}/crystalperf-APP_ID-*.jfr' .    # of each worker",),
        here=lambda folder, log: f"{folder}/{log}",
    ),
    "yarn": Place(
        title="YARN",
        given=_APPEND,
        log_dir=lambda _folder: "hdfs:///spark-logs",
        stored=lambda _folder: "/spark-logs",
        log=("The folder must exist, or Spark does not start: hdfs dfs -mkdir /spark-logs",),
        lands=_nodes,
        fetch=lambda folder: (
            "hdfs dfs -get /spark-logs/LOG .",
            f"scp 'NODE:{folder}/crystalperf-*.jfr' .    # of each node, or let {folder or '/'} be a share",
        ),
    ),
    "kubernetes": Place(
        title="Kubernetes",
        given=(
            *_APPEND,
            "Pods take their files with them, so all of them mount a volume that they",
            "may write to: put the name of your claim in place of YOUR-CLAIM.",
        ),
        log_dir=lambda folder: f"file://{folder or '/'}",
        stored=lambda folder: folder,
        log=("It lies on the volume; s3a://BUCKET/FOLDER does as well.",),
        lands=lambda folder: (f"All pods record to {folder or '/'}, on the volume.",),
        fetch=lambda folder: (f"kubectl cp POD-WITH-THE-VOLUME:{folder or '/'} .",),
        more=_volumes,
    ),
    "databricks": Place(
        title="Databricks",
        given=(
            "Put the lines into the compute's Spark config (Advanced options, Spark).",
            "Serverless and standard (shared) compute take no JVM options: use the log alone.",
        ),
        log_dir=lambda _folder: "",
        stored=lambda _folder: "DESTINATION/CLUSTER_ID/eventlog",
        log=(
            "Databricks writes it by itself. Have it delivered: Advanced options,",
            "Logging, a destination such as dbfs:/cluster-logs or a volume. It arrives",
            "every five minutes, in parts of which all but the last are gzip-ed.",
        ),
        lands=lambda folder: (
            f"Recordings lie in {folder or '/'} on each machine and vanish with the cluster, whose",
            "JVMs may be ended without writing them: before that, on every machine,",
            "`jcmd PID JFR.dump` and a copy to a volume, by an init script for instance.",
        ),
        fetch=lambda _folder: ("databricks fs cp -r dbfs:/cluster-logs/CLUSTER_ID/eventlog eventlog",),
        here=lambda _folder, _log: "eventlog",
        is_tried=False,
    ),
    "emr": Place(
        title="Amazon EMR",
        given=(
            "The lines are properties of the classification spark-defaults, or --conf of",
            "a step; `crystalperf setup spark --on emr --json` has them by name.",
        ),
        log_dir=lambda _folder: "s3://BUCKET/spark-logs",
        stored=lambda _folder: "s3://BUCKET/spark-logs",
        log=(
            "Unless told otherwise EMR keeps it in hdfs:///var/log/spark/apps, which ends",
            "with the cluster. The folder in S3 must exist. EMR Serverless takes the",
            "place from its monitoring configuration; the log is below",
            "applications/APPLICATION/jobs/JOB/sparklogs of the bucket.",
        ),
        lands=_nodes,
        fetch=lambda folder: (
            "aws s3 cp --recursive s3://BUCKET/spark-logs/LOG LOG",
            f"scp 'hadoop@NODE:{folder}/crystalperf-*.jfr' .    # of each node, while the cluster lives",
        ),
        is_tried=False,
    ),
    "dataproc": Place(
        title="Google Dataproc",
        given=(
            "Give the lines to a job with --properties-file, or to the cluster as it is",
            "made, with the prefix spark: before each key.",
        ),
        log_dir=lambda _folder: "gs://BUCKET/spark-job-history",
        stored=lambda _folder: "gs://BUCKET/spark-job-history",
        log=(
            "The folder must exist. Without this line the log is where the cluster's",
            "property spark:spark.eventLog.dir says, in the cluster's temporary bucket.",
        ),
        lands=_nodes,
        fetch=lambda folder: (
            "gcloud storage cp -r gs://BUCKET/spark-job-history/LOG .",
            f"gcloud compute scp 'NODE:{folder}/crystalperf-*.jfr' .    # of each node, while the cluster lives",
        ),
        is_tried=False,
    ),
}


@dataclass(frozen=True)
class Written:
    """The name of a version's log, and the name of the versions."""

    versions: str
    name: str
    what: str


_WRITTEN = (
    ((4, 0), Written("Spark 4", "eventlog_v2_APP_ID", "a folder of parts, events_1_APP_ID.zstd and so on")),
    (
        (3, 2),
        Written(
            "Spark 3.2 to 3.5",
            "APP_ID",
            "a file, ending in .zstd with eventLog.compress; with rolling.enabled as Spark 4",
        ),
    ),
    (
        (0, 0),
        Written("Spark before 3.2", "APP_ID", "one file, ending in .lz4 with eventLog.compress (before 2.0: .snappy)"),
    ),
)
"""By the first version of each kind; rolling and compression became defaults in 4.0, zstd in 3.2."""


def written(version: str | None) -> tuple[Written, ...]:
    """The names of logs with a version's default settings; of every version if it is None."""
    if version is None:
        return tuple(each for _, each in _WRITTEN)
    numbers = tuple(int(each) for each in version.split(".")[:2] if each.isdigit())
    return (next(each for first, each in _WRITTEN if (*numbers, 0, 0)[:2] >= first),)
