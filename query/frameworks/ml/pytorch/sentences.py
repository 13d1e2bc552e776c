"""The sentences of findings and advice that only trainings with PyTorch have, and those of any training."""

from __future__ import annotations

from crystalperf.query.frameworks.ml.pytorch import findings
from crystalperf.query.frameworks.ml.training import sentences
from crystalperf.query.results.sentences import Sentences
from crystalperf.query.results.words import Words
from crystalperf.query.trace.amounts import counted

SENTENCES = Sentences(sentences.SENTENCES)

_DISK_SHARE = 0.1
"""Minimum share of the disk in the lost time for which the disk is mentioned."""

# Findings -------------------------------------------------------------------------------------------------------------

SENTENCES.fixed(
    {
        findings.SynchroniseLess: (
            "synchronise less within a step (`.item()`, `.cpu()`), and trace all that runs on the accelerator"
        ),
        findings.ReuseDeviceMemory: (
            "let PyTorch keep memory for reuse: neither `PYTORCH_NO_CUDA_MEMORY_CACHING` nor `empty_cache()` within a"
            " step, and memory to spare"
        ),
        findings.WarmUp: "warm up before tracing: a few steps first, or `schedule(wait=…, warmup=…)`",
        findings.TracePython: "trace its functions of Python too: `profile(with_stack=True)`",
        findings.OverlapPythonWaits: (
            "see what these wait for, another thread, process or timer, and have that done while the training goes on"
        ),
        findings.UseLoaders: "have loader processes make batches ahead (`num_workers`, `prefetch_factor`)",
    }
)


def _lost(found: findings.Lost, text: str) -> str:
    if found.disk_ms < _DISK_SHARE * found.lost_ms:
        return text
    return f"{text}, {found.disk_ms:.0f} ms of them on the disk"


def _names(found: findings.Lost) -> str:
    return " and ".join(found.names)


@SENTENCES.of(findings.UntoldWait)
def untold_wait(found: findings.UntoldWait, _words: Words) -> str:
    waited = f"threads waited {found.lost_ms:.0f} ms in {_names(found)}"
    return _lost(found, f"{waited} while nothing that was traced ran on an accelerator")


@SENTENCES.of(findings.FreeingMemory)
def freeing_memory(found: findings.FreeingMemory, _words: Words) -> str:
    text = f"threads took {found.lost_ms:.0f} ms to free memory of the accelerator, most in {_names(found)}"
    return _lost(found, text)


@SENTENCES.of(findings.Starting)
def starting(found: findings.Starting, _words: Words) -> str:
    took = f"threads took {found.lost_ms:.0f} ms to start the accelerator and its libraries"
    return _lost(found, f"{took}, most in {_names(found)}")


@SENTENCES.of(findings.UntoldHostTime)
def untold_host_time(found: findings.UntoldHostTime, _words: Words) -> str:
    text = f"a thread took {found.lost_ms:.0f} ms between operators, and nothing that was traced tells for what"
    return _lost(found, text)


@SENTENCES.of(findings.WaitingInPython)
def waiting_in_python(found: findings.WaitingInPython, _words: Words) -> str:
    text = f"threads waited {found.lost_ms:.0f} ms in functions of Python, most in {_names(found)}"
    return _lost(found, text)


@SENTENCES.of(findings.OwnBatches)
def own_batches(found: findings.OwnBatches, _words: Words) -> str:
    return _lost(found, f"a thread made its batches itself for {found.lost_ms:.0f} ms (num_workers=0)")


@SENTENCES.of(findings.FirstUse)
def first_use(found: findings.FirstUse, _words: Words) -> str:
    return _lost(found, f"launches took {found.lost_ms:.0f} ms for the first use of a kernel")


@SENTENCES.of(findings.OneLink)
def one_link(found: findings.OneLink, _words: Words) -> str:
    return f"{counted(found.processes, 'process')} sent all to one of them and got it back, {found.took_ms:.0f} ms"


@SENTENCES.of(findings.AllReduce)
def all_reduce(advice: findings.AllReduce, _words: Words) -> str:
    count = advice.processes
    return (
        f"exchange gradients by all_reduce, as DistributedDataParallel does: each link then carries 1/{count} as much"
    )


@SENTENCES.of(findings.WaitsInPython)
def waits_in_python(found: findings.WaitsInPython, _words: Words) -> str:
    most = "" if found.function is None else f", most in {found.function}"
    return f"threads waited in functions of Python{most}"
