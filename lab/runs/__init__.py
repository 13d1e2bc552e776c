"""Starting real Spark under shaped resources: clusters, workloads with their data, suites of runs, and odd ones."""
