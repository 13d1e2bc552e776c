"""The values of answers: findings, recommendations, refusals and assumptions.

Each is a frozen dataclass of one kind of a closed set, with a stable key, typed numbers and names, and no prose.
crystalperf.query.text writes the sentences.
"""
