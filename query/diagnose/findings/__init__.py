"""Findings: what cost time on the critical path, and what to try.  Each rule is a function, `facts → findings`.

A rule states its evidence and what would contradict it, and checks both; it does not report a contradicted cause.
A cost is an upper bound: the time of the finding on the critical path, or the most that a change could save of it.
query.results.kinds.Basis explains the bases.  Stages of one kind are one finding, whose cost is their sum (added_up).
The rules apply to any framework; a framework can replace the advice (Advisor).
"""

from crystalperf.query.diagnose.findings.alone import coordinator as coordinator
from crystalperf.query.diagnose.findings.devices import odd_use as odd_use
from crystalperf.query.diagnose.findings.lanes import idle_advice as idle_advice
from crystalperf.query.diagnose.findings.lanes import idle_slots as idle_slots
from crystalperf.query.diagnose.findings.lanes import short_of_cpus as short_of_cpus
from crystalperf.query.diagnose.findings.lanes import starting_units as starting_units
from crystalperf.query.diagnose.findings.memory import collecting_garbage as collecting_garbage
from crystalperf.query.diagnose.findings.memory import reading_anew as reading_anew
from crystalperf.query.diagnose.findings.memory import spilling as spilling
from crystalperf.query.diagnose.findings.parts import added_up as added_up
from crystalperf.query.diagnose.findings.parts import on_a_device as on_a_device
from crystalperf.query.diagnose.findings.stragglers import slow_hosts as slow_hosts
from crystalperf.query.diagnose.findings.stragglers import straggler as straggler
