"""What traces of training programs have in common, whichever framework left them.

wire.py      Protocol Buffers without their library
chrome.py    Chrome's JSON as a stream of events
calls.py     functions of C that hand the thread of a program in Python to a device
nesting.py   events that nest: which was the innermost
program.py   operations, stretches, devices and steps, and the trace of them
lanes.py     threads and streams cut into stretches that wait for each other
devices.py   accelerators: what their time is split by, and what each can do
operators.py time by operator
worlds.py    other numbers of processes; batches.py: batches of another size
servers.py   what steps come to with parameter servers
absent.py    ranks that left no trace
collectives.py which belong together, and who waited for whom
rules.py     findings; framework.py: all of it as a Framework
"""
