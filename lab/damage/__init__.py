"""Damaged event logs and recordings: every one must end as tables or as one sentence."""
