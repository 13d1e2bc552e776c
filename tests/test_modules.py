"""The catalogue and the shipped indexes, held against what the frameworks' distributions ship."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import duckdb
import pytest

pytest.importorskip("tree_sitter", reason="the indexer extra is not installed")

from crystalperf.indexer.catalogue import catalogue
from crystalperf.indexes.exports import prebuilt_folder

LISTED = Path(__file__).parent / "data" / "modules" / "flink-1.20.3.tsv"
"""Archives, packages and classes of apache-flink-libraries 1.20.3 (research/2026-11-27-lab-commands-removed.md)."""

WITHOUT_SOURCES = {
    "org.apache.flink.container": "flink-container",
    "org.apache.flink.dropwizard": "flink-metrics-dropwizard",
    "org.apache.flink.externalresource.gpu": "flink-external-resource-gpu",
    "org.apache.flink.formats.common": "flink-format-common",
    "org.apache.flink.kubernetes": "flink-kubernetes",
    "org.apache.flink.metrics.datadog": "flink-metrics-datadog",
    "org.apache.flink.metrics.graphite": "flink-metrics-graphite",
    "org.apache.flink.metrics.influxdb": "flink-metrics-influxdb",
    "org.apache.flink.metrics.jmx": "flink-metrics-jmx",
    "org.apache.flink.metrics.slf4j": "flink-metrics-slf4j",
    "org.apache.flink.metrics.statsd": "flink-metrics-statsd",
    "org.apache.flink.sql.parser": "flink-sql-parser",
    "org.apache.flink.table.calcite": "flink-table-calcite-bridge",
    "org.apache.flink.table.codesplit": "flink-table-code-splitter",
    "org.apache.flink.traces.slf4j": "flink-metrics-slf4j",
    "org.apache.flink.yarn": "flink-yarn",
}
"""Packages of Flink's distribution that the shipped index lacks, with the module whose sources Maven did not have."""


def artifacts(package: str) -> set[str]:
    return {each.partition(":")[2] for each in catalogue()[package].artifacts}


def module_of(package: str) -> str | None:
    return next((module for start, module in WITHOUT_SOURCES.items() if f"{package}.".startswith(f"{start}.")), None)


def test_spark_ships_no_module_that_the_catalogue_lacks() -> None:
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        pytest.skip("pyspark, which ships Spark's jars, is not installed")
    jars = Path(found.origin).parent.glob("jars/spark-*.jar")
    modules = {match[1] for each in jars if (match := re.fullmatch(r"(spark-.+_2\.1[23])-[\d.]+\.jar", each.name))}
    assert len(modules) > 20
    assert modules <= artifacts("spark")


def test_flink_ships_no_module_that_the_catalogue_lacks() -> None:
    """Those under their own names; what is in flink-dist and the uber jars the next test asks of the index."""
    archives = {line.split("\t")[0] for line in LISTED.read_text(encoding="utf-8").splitlines()}
    modules = {re.sub(r"-1\.20\.3\.jar$", "", each.rpartition("/")[2]).removesuffix(".jar") for each in archives}
    bundles = {"flink-dist", "flink-table-api-java-uber", "bash-java-utils", "flink-table-planner"}
    assert modules - bundles <= artifacts("flink")
    assert set(WITHOUT_SOURCES.values()) <= artifacts("flink")


def test_the_shipped_index_of_flink_has_all_packages_whose_sources_maven_has() -> None:
    shipped = prebuilt_folder() / "flink-1.20.3"
    with duckdb.connect() as connection:
        classes = connection.execute("SELECT class_name FROM read_parquet(?)", [str(shipped / "classes.parquet")])
        indexed = {".".join(row[0].split(".")[:-1][:5]) for row in classes.fetchall()}
        warned = connection.execute("SELECT file FROM read_parquet(?)", [str(shipped / "build_warnings.parquet")])
        lacking = {row[0].partition(":")[2] for row in warned.fetchall()}
    packages = {line.split("\t")[1] for line in LISTED.read_text(encoding="utf-8").splitlines()}
    assert len(packages) > 100
    missing = packages - indexed
    assert {each for each in missing if module_of(each) is None} == set()
    assert {module_of(each) for each in missing} <= lacking
    assert {module_of(each) for each in missing} == set(WITHOUT_SOURCES.values()), (
        "what is there again is said to be not"
    )
