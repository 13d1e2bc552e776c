"""What CrystalPerf's commands and its recorders cost."""
