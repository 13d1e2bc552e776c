"""Attribution: matches recorded stacks to functions, and splits each task's time by resource."""
