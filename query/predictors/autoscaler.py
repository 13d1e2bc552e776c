"""The autoscaler of Flink's Kubernetes operator: as DS2, with the busy time of each vertex' busiest slot.

true rate = records in per second / (busy ms per second / 1000)
"""

from __future__ import annotations

from crystalperf.plugin import Predictor
from crystalperf.query.predictors.ds2 import SETTINGS, rate_of

AUTOSCALER = Predictor(
    lambda execution, scenario: rate_of("autoscaler", execution, scenario, lambda each: each.busiest),
    source="Apache Flink Kubernetes operator, autoscaler: ScalingMetrics",
    runs=frozenset(("stream",)),
    settings=lambda _run: SETTINGS,
)
