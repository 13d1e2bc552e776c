"""Proof of recommendations: apply the first one of a run literally, rerun, and compare with its claim.

``python -m lab.advice run`` makes the runs, ``python -m lab.advice table`` shows what came of them.
"""
