"""Whether another version of CrystalPerf gives the same answers, at every interface, over real runs."""
