"""Findings: what cost time on the critical path, and what to try.  Each rule is a function, `facts → findings`.

A rule states its evidence and what would contradict it, and checks both; it does not report a contradicted cause.

A cost is an upper bound: the time of the finding on the critical path, or the most that a change could save of it.
query.results.kinds.Basis explains the bases.  Stages of one kind are one finding, whose cost is their sum
(sum_of_stages).

The rules apply to any framework; a framework can replace the advice (Advisor).
"""

from crystalperf.query.diagnose.findings.alone import driver as driver
from crystalperf.query.diagnose.findings.devices import odd_use as odd_use
from crystalperf.query.diagnose.findings.memory import cache_miss_findings as cache_miss_findings
from crystalperf.query.diagnose.findings.memory import garbage_collection as garbage_collection
from crystalperf.query.diagnose.findings.memory import spilling as spilling
from crystalperf.query.diagnose.findings.parts import on_a_device as on_a_device
from crystalperf.query.diagnose.findings.parts import sum_of_stages as sum_of_stages
from crystalperf.query.diagnose.findings.slots import idle_advice as idle_advice
from crystalperf.query.diagnose.findings.slots import idle_slots as idle_slots
from crystalperf.query.diagnose.findings.slots import short_of_cpus as short_of_cpus
from crystalperf.query.diagnose.findings.slots import starting_tasks as starting_tasks
from crystalperf.query.diagnose.findings.stragglers import slow_hosts as slow_hosts
from crystalperf.query.diagnose.findings.stragglers import slow_ones as slow_ones
from crystalperf.query.diagnose.findings.stragglers import straggler as straggler
