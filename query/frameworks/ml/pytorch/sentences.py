"""The sentences of findings and advice that only trainings with PyTorch have, and those of any training."""

from __future__ import annotations

from crystalperf.query.frameworks.ml.pytorch import assumptions, findings, refusals
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
            "synchronise less often within a step (`.item()`, `.cpu()`), and trace everything that runs on the"
            " accelerator"
        ),
        findings.ReuseDeviceMemory: (
            "let PyTorch reuse device memory: unset `PYTORCH_NO_CUDA_MEMORY_CACHING`, do not call `empty_cache()`"
            " within a step, and leave some memory free"
        ),
        findings.WarmUp: "warm up before tracing: run a few steps first, or use `schedule(wait=…, warmup=…)`",
        findings.TracePython: "trace Python functions too: `profile(with_stack=True)`",
        findings.OverlapPythonWaits: (
            "find out what these functions wait for (a thread, a process, a timer), and overlap that with the training"
        ),
        findings.LaunchLess: (
            'launch less from the host: `torch.compile(mode="reduce-overhead")` or CUDA graphs, a fused or `foreach`'
            " optimizer, a larger batch, less Python in the step"
        ),
        findings.AskLater: (
            "ask for results once in many steps, or add them up on the accelerator and ask once (`.item()`, `.cpu()`,"
            " boolean masks and `nonzero` wait for it)"
        ),
        findings.MoveFewerBytes: (
            "move fewer bytes: lower precision (`torch.autocast`), fused kernels (`torch.compile`), `channels_last` for"
            " convolutions"
        ),
        findings.UseLoaders: "let loader processes prefetch batches (`num_workers`, `prefetch_factor`)",
    }
)


def _lost(found: findings.Lost, text: str) -> str:
    if found.disk_ms < _DISK_SHARE * found.lost_ms:
        return text
    return f"{text}, {found.disk_ms:.0f} ms of that on the disk"


def _names(found: findings.Lost) -> str:
    return " and ".join(found.names)


@SENTENCES.of(findings.UnexplainedWait)
def unexplained_wait(found: findings.UnexplainedWait, _words: Words) -> str:
    waited = f"threads waited {found.lost_ms:.0f} ms in {_names(found)}"
    return _lost(found, f"{waited} while no traced operation ran on an accelerator")


@SENTENCES.of(findings.FreeingMemory)
def freeing_memory(found: findings.FreeingMemory, _words: Words) -> str:
    text = f"threads took {found.lost_ms:.0f} ms to free accelerator memory, mostly in {_names(found)}"
    return _lost(found, text)


@SENTENCES.of(findings.Starting)
def starting(found: findings.Starting, _words: Words) -> str:
    took = f"threads took {found.lost_ms:.0f} ms to start the accelerator and its libraries"
    return _lost(found, f"{took}, mostly in {_names(found)}")


@SENTENCES.of(findings.UnexplainedHostTime)
def unexplained_host_time(found: findings.UnexplainedHostTime, _words: Words) -> str:
    text = f"a thread spent {found.lost_ms:.0f} ms between operators, and the trace does not show what it did"
    return _lost(found, text)


@SENTENCES.of(findings.WaitingInPython)
def waiting_in_python(found: findings.WaitingInPython, _words: Words) -> str:
    text = f"threads waited {found.lost_ms:.0f} ms in Python functions, mostly in {_names(found)}"
    return _lost(found, text)


@SENTENCES.of(findings.OwnBatches)
def own_batches(found: findings.OwnBatches, _words: Words) -> str:
    return _lost(found, f"a training thread spent {found.lost_ms:.0f} ms producing its own batches (num_workers=0)")


@SENTENCES.of(findings.FirstUse)
def first_use(found: findings.FirstUse, _words: Words) -> str:
    return _lost(found, f"the first launches of kernels took {found.lost_ms:.0f} ms")


def _at(place: str | None) -> str:
    return "" if place is None else f", mostly in {place}"


@SENTENCES.of(findings.LaunchBound)
def launch_bound(found: findings.LaunchBound, _words: Words) -> str:
    return f"the GPU is idle for {found.idle_ms:.1f} ms of a step while the host makes {found.launches:.0f} launches"


@SENTENCES.of(findings.Synchronises)
def synchronises(found: findings.Synchronises, _words: Words) -> str:
    return f"the host waits for the GPU's results {found.times:.0f} times a step{_at(found.place)}"


@SENTENCES.of(findings.DeviceMemoryBound)
def device_memory_bound(found: findings.DeviceMemoryBound, _words: Words) -> str:
    return f"kernels take {found.kernels_ms:.0f} ms that the bandwidth of the GPU's memory limits"


@SENTENCES.of(findings.OneLink)
def one_link(found: findings.OneLink, _words: Words) -> str:
    return f"{counted(found.processes, 'process')} exchanged data through one of them, {found.took_ms:.0f} ms"


@SENTENCES.of(findings.AllReduce)
def all_reduce(advice: findings.AllReduce, _words: Words) -> str:
    count = advice.processes
    return (
        f"exchange gradients with all_reduce, as DistributedDataParallel does: the busiest link then carries 1/{count}"
        " of the bytes"
    )


SENTENCES.fixed(
    {
        findings.StartsAccelerator: "starting the accelerator",
        findings.WaitsForAccelerator: "waiting for the accelerator, on which no traced operation runs",
        findings.FreesMemory: "freeing memory of the accelerator",
        findings.FirstUses: "first use of kernels",
        findings.MakesBatches: "making batches on the training thread",
    }
)


@SENTENCES.of(findings.SlowRank)
def slow_rank(found: findings.SlowRank, _words: Words) -> str:
    return f"{found.process}, for which the others wait"


@SENTENCES.of(findings.WaitsInPython)
def waits_in_python(found: findings.WaitsInPython, _words: Words) -> str:
    most = "" if found.function is None else f", mostly in {found.function}"
    return f"threads waited in Python functions{most}"


# Refusals and assumptions ---------------------------------------------------------------------------------------------

SENTENCES.fixed(
    {
        refusals.NoLoaders: (
            "the training's thread makes its batches itself; trace a run with `num_workers` to know what loader"
            " processes need for a batch"
        ),
        refusals.LoadersAhead: (
            "steps did not wait for their batches, so the time that loader processes need for one is unknown"
        ),
        refusals.NoKernels: "the trace has no kernels of an accelerator; profile with ProfilerActivity.CUDA too",
        assumptions.LaunchesRemoved: (
            "the host does nothing but make batches: one graph holds the whole step, and its own launch takes no time"
        ),
    }
)


@SENTENCES.of(refusals.GraphUnknown)
def graph_unknown(refusal: refusals.GraphUnknown, _words: Words) -> str:
    alone = "" if refusal.busy_ms is None else f"; its kernels alone take at least {refusal.busy_ms:.1f} ms a step"
    return f"the trace does not show which part of a step fits into a graph{alone}"


@SENTENCES.of(assumptions.BatchesMade)
def batches_made(assumed: assumptions.BatchesMade, _words: Words) -> str:
    return (
        f"loader processes make a batch every {assumed.period_ms:.1f} ms ({assumed.recorded_ms:.1f} ms in the trace):"
        " in proportion to the examples, and to their number while there are CPUs for each; without waits for them a"
        f" step takes {assumed.alone_ms:.1f} ms"
    )
