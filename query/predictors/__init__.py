"""Predictors of the literature, each a module with its formula and its source.

They use what crystalperf.plugin offers to other packages and nothing else, so each is an example of a predictor.
crystalperf.query.predict.registry has their names.
"""
