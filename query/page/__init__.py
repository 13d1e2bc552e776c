"""What a page of a run shows, as frozen values: the verdict, a grid of what-ifs, the units over time, the DAG, stacks.

values     what there is, columnar where there is much of it
grid       each setting of the grid asked of the run, exactly as `predict` answers it
timeline   every unit on its worker's lanes, coarsened where there are too many
graph      groups and the coordinator's intervals with what ties them; plans; how evenly a group's units went
flames     sampled stacks as one tree
said       every sentence that the terminal says of the run
making     all of it from a run
"""
