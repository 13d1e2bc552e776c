"""The sentences of an answer, made of its values alone; every interface shows these.

A module a subject: findings and advice, what a log lacks, recommendations, refusals, assumptions.  A framework has the
sentences of its own kinds in its `sentences` module.
"""
