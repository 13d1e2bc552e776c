"""Compare the answers of two versions of CrystalPerf, at every interface, over real runs."""
