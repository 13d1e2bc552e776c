"""CrystalPerf: where did a dataflow job's time go, and what if its resources were different?"""
