"""Values that an answer carries: findings, recommendations, refusals and assumptions.

Each is a frozen dataclass of a closed set of kinds: a stable key, typed numbers and names, and no prose.
crystalperf.query.text makes the sentences.
"""
