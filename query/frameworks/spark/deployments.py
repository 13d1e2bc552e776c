"""Deployments of Spark: how to set a job's settings, where log and recordings are written, how to fetch them.

setup.py prints the text as comments.  Steps that come from a vendor's documentation and were never tried say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from crystalperf.indexes.frozen import frozen

Lines = tuple[str, ...]

NOT_TRIED = "Not tested: these steps follow the vendor's documentation."


@frozen
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
        f"Each executor records to {folder or '/'} on its node; the driver records on the node",
        "of the application master (cluster mode) or where spark-submit runs. Keep the",
        "absolute path, because YARN deletes its containers' folders.",
    )


_APPEND: Lines = (
    "Append these lines to conf/spark-defaults.conf, or pass each to spark-submit as",
    "--conf 'KEY=VALUE'. Spark from pip has no conf folder: save them as a file, and",
    "pass it with --properties-file FILE, or as conf/spark-defaults.conf of a folder",
    "DIR with `export SPARK_CONF_DIR=DIR/conf`. In a program that starts Spark itself:",
    "SparkSession.builder.config('KEY', 'VALUE'), before getOrCreate().",
)

PLACES: Mapping[str, Place] = {
    "plain": Place(
        title="standalone, or local[N]",
        given=_APPEND,
        log_dir=lambda folder: f"file://{folder or '/'}",
        stored=lambda folder: folder,
        log=("Create the folder where the driver runs; otherwise Spark does not start.",),
        lands=lambda folder: (
            f"Each executor records to {folder or '/'} on its worker's machine; the driver records",
            "where spark-submit runs. With local[N], the driver's recording has the tasks too.",
        ),
        fetch=lambda folder: (f"scp 'WORKER:{folder}/crystalperf-APP_ID-*.jfr' .    # for each worker",),
        here=lambda folder, log: f"{folder}/{log}",
    ),
    "yarn": Place(
        title="YARN",
        given=_APPEND,
        log_dir=lambda _folder: "hdfs:///spark-logs",
        stored=lambda _folder: "/spark-logs",
        log=("Create the folder; otherwise Spark does not start: hdfs dfs -mkdir /spark-logs",),
        lands=_nodes,
        fetch=lambda folder: (
            "hdfs dfs -get /spark-logs/LOG .",
            f"scp 'NODE:{folder}/crystalperf-*.jfr' .    # for each node, or use a shared {folder or '/'}",
        ),
    ),
    "kubernetes": Place(
        title="Kubernetes",
        given=(
            *_APPEND,
            "Replace YOUR-CLAIM by the name of a persistent volume claim that all pods can",
            "write to, because the files of a pod are deleted with it.",
        ),
        log_dir=lambda folder: f"file://{folder or '/'}",
        stored=lambda folder: folder,
        log=("The log is on the volume; you can also use s3a://BUCKET/FOLDER.",),
        lands=lambda folder: (f"All pods record to {folder or '/'}, on the volume.",),
        fetch=lambda folder: (f"kubectl cp POD-WITH-THE-VOLUME:{folder or '/'} .",),
        more=_volumes,
    ),
    "databricks": Place(
        title="Databricks",
        given=(
            "Paste the lines into the compute's Spark config (Advanced options, Spark). On",
            "serverless and standard (shared) compute, JVM options are not allowed: use only",
            "the log.",
        ),
        log_dir=lambda _folder: "",
        stored=lambda _folder: "DESTINATION/CLUSTER_ID/eventlog",
        log=(
            "Databricks writes it by default. Set where to deliver it: Advanced options,",
            "Logging, a destination such as dbfs:/cluster-logs or a volume. Databricks",
            "delivers it every five minutes in parts; all but the last are gzip-ed.",
        ),
        lands=lambda folder: (
            f"Recordings are in {folder or '/'} on each machine and are deleted with the cluster,",
            "which may also kill JVMs before they write them. Before the cluster ends, run",
            "`jcmd PID JFR.dump` on each machine and copy the file to a volume, for example",
            "with an init script.",
        ),
        fetch=lambda _folder: ("databricks fs cp -r dbfs:/cluster-logs/CLUSTER_ID/eventlog eventlog",),
        here=lambda _folder, _log: "eventlog",
        is_tried=False,
    ),
    "emr": Place(
        title="Amazon EMR",
        given=(
            "Set the lines as properties of the classification spark-defaults, or pass them",
            "to a step as --conf; `crystalperf setup spark --on emr --json` has them by name.",
        ),
        log_dir=lambda _folder: "s3://BUCKET/spark-logs",
        stored=lambda _folder: "s3://BUCKET/spark-logs",
        log=(
            "Create the folder in S3. By default, EMR writes the log to",
            "hdfs:///var/log/spark/apps, which is deleted with the cluster. On EMR",
            "Serverless, set the folder in the monitoring configuration; the log is below",
            "applications/APPLICATION/jobs/JOB/sparklogs of the bucket.",
        ),
        lands=_nodes,
        fetch=lambda folder: (
            "aws s3 cp --recursive s3://BUCKET/spark-logs/LOG LOG",
            f"scp 'hadoop@NODE:{folder}/crystalperf-*.jfr' .    # for each node, while the cluster runs",
        ),
        is_tried=False,
    ),
    "dataproc": Place(
        title="Google Dataproc",
        given=(
            "Pass the lines to a job with --properties-file, or to the cluster when you",
            "create it, with the prefix spark: before each key.",
        ),
        log_dir=lambda _folder: "gs://BUCKET/spark-job-history",
        stored=lambda _folder: "gs://BUCKET/spark-job-history",
        log=(
            "Create the folder. Without this line, the log is in the folder of the cluster's",
            "property spark:spark.eventLog.dir, in the cluster's temporary bucket.",
        ),
        lands=_nodes,
        fetch=lambda folder: (
            "gcloud storage cp -r gs://BUCKET/spark-job-history/LOG .",
            f"gcloud compute scp 'NODE:{folder}/crystalperf-*.jfr' .    # for each node, while the cluster runs",
        ),
        is_tried=False,
    ),
}


@frozen
class Written:
    """The name of a log, and the versions of Spark that write it."""

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
            "a file (.zstd with eventLog.compress); with rolling.enabled, a folder as in Spark 4",
        ),
    ),
    (
        (0, 0),
        Written("Spark before 3.2", "APP_ID", "one file (.lz4 with eventLog.compress; before 2.0: .snappy)"),
    ),
)
"""By the first version of each kind; rolling and compression became defaults in 4.0, zstd in 3.2."""


def written(version: str | None) -> tuple[Written, ...]:
    """The names of logs with a version's default settings; of every version if it is None."""
    if version is None:
        return tuple(each for _, each in _WRITTEN)
    numbers = tuple(int(each) for each in version.split(".")[:2] if each.isdigit())
    return (next(each for first, each in _WRITTEN if (*numbers, 0, 0)[:2] >= first),)
