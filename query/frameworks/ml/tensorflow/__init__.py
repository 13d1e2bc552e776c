"""TensorFlow: all code that is specific to it.

files.py      recognises traces, and groups those of one run
messages.py   RunMetadata as typed values
graph.py      those as the program's work: kernels, what each waited for, steps
timeline.py   the same from Chrome's JSON
xplane.py     the same from XPlanes
operator_kinds.py  kinds of operators, by their names
trace.py      a trace of any kind as a trace of the core
setup.py      the code with which a program records traces
framework.py  all of it as a Framework, which only the registry imports
"""
