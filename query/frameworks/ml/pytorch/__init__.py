"""PyTorch: all code that is specific to it.

files.py        recognises traces, and groups those of one run
kineto.py       a trace as threads and streams; names.py: facts in names of a trace
outermost.py    the outermost operators of a thread, with their call sites
trace.py        those of all ranks as a trace of the core, assembled in lanes.py
threads.py      the time of threads between their operators; waits.py: waits for accelerators,
                or (queue.py) for space in the queue of launches; python.py: Python functions
first_uses.py   launches that load a kernel
streams.py      operations of accelerators; launches.py: what they waited for
collectives.py  collectives, and clock skew; steps.py: steps, and accelerators that fall behind
rules.py        findings of PyTorch alone; loaders.py: batches and launches in a scenario
setup.py        the code with which a program records traces
framework.py    all of it as a Framework, which only the registry imports
"""
