"""What traces of training programs have in common, whichever framework left them.

wire.py      Protocol Buffers without their library
chrome.py    Chrome's JSON as a stream of events
program.py   operations, stretches, devices and steps, and the trace of them
lanes.py     threads and streams cut into stretches that wait for each other
devices.py   accelerators: what their time is split by, and what each can do
operators.py time by operator
"""
