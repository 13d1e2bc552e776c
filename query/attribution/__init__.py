"""Attribution: matches recorded stacks to functions, and splits each unit's time by resource."""
