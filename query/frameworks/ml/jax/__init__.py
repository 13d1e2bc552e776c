"""JAX: all code that is specific to it.

files.py       recognises traces; its profiler is TensorFlow's, and so are its XPlanes
operations.py  operations of a host thread: operators of XLA, its runtime, Python
trace.py       a trace as a trace of the core
setup.py       the code with which a program records one
framework.py   all of it as a Framework, which only the registry imports
"""
