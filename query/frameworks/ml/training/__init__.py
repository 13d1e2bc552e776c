"""The common part of all frameworks that train models.

wire.py      Protocol Buffers without their library
chrome.py    Chrome's JSON as a stream of events
calls.py     C functions through which the thread of a Python program uses a device
nesting.py   nested events: the innermost at each moment
program.py   operations, segments, devices and steps, and their trace
lanes.py     threads and streams split into segments that wait for each other
devices.py   accelerators: their resources and peak rates
operator_times.py  time by operator
worlds.py    other numbers of processes; batches.py: batches of another size
servers.py   step time with parameter servers
absent.py    ranks without a trace
collectives.py which parts belong together, and which process waited for which
rules.py     findings; framework.py: all of it as a Framework
"""
