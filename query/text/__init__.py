"""The sentences of answers, made from their values only; every interface shows the same sentences.

One module per subject: findings and advice, missing data, recommendations, refusals, assumptions.  A framework has the
sentences of its own kinds in its `sentences` module.
"""
