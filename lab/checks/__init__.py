"""Real logs, recordings and frameworks through CrystalPerf: what it gives, and what it misses."""
