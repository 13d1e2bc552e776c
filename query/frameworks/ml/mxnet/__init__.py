"""MXNet: all code that is specific to it.

files.py   recognises traces
trace.py   a trace as a trace of the core
setup.py   the code with which a program records one
framework.py  all of it as a Framework, which only the registry imports
"""
