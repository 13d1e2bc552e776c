"""The data of a run's page, as frozen values: the verdict, a grid of what-ifs, the tasks over time, the DAG, stacks.

page       all data of the page, from a run
grid       a prediction for each setting of the grid, the same as `predict` gives
timeline   every task on its worker's slots, aggregated if there are too many
graph      the execution DAG of stages and driver intervals; plans; the distribution over a stage's tasks
flame_graph sampled stacks as one tree (flame graph); stacktree builds and prunes it
page_text  every sentence that the terminal shows about the run
frontend   how an interface words commands
"""
