"""Kinds of TensorFlow's operators, by their names."""

from __future__ import annotations

from crystalperf.indexes.regex import regex

_INPUT = regex(
    r"(Iterator(V\d)?GetNext|IteratorGetNext|OneShotIterator|QueueDequeue|BatchDataset|StagingArea|Unstage|MapUnstage|RecordInput)"
)
_DISK = regex(
    r"(ReadFile|WriteFile|ReaderRead|WholeFileReader|TFRecordReader|FixedLengthRecordReader|TextLineReader|Restore|Save"
    r"|MergeV2Checkpoints|MatchingFiles|LookupTableImport|WriteSummary|FlushSummary|CreateSummaryFileWriter)"
)
_PYTHON = regex(r"(Eager)?PyFunc")
_NET = regex(r"(Collective|NcclAllReduce|NcclReduce|NcclBroadcast|Horovod|RemoteCall|RecvTensor|BytePS|BigQuery|Rpc)")


def is_input(operator: str) -> bool:
    """Whether it returns the next batch: its time is a wait for the queue or the input pipeline."""
    return _INPUT.match(operator) is not None


def likely_of(operator: str) -> str:
    """The bottleneck of an operator of the CPU, by its name.

    '' for the program's own Python, which may compute, read, sleep or wait.
    """
    if _PYTHON.match(operator):
        return ""
    if _DISK.match(operator):
        return "disk"
    return "net" if _NET.match(operator) else "cpu"
