"""Proof of memory advice: the heap that one roomy run shows to be needed, and the smallest with which the job works.

``python -m lab.memory run`` makes the runs, ``python -m lab.memory table`` shows both.
"""
