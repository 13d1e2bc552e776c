"""The ledger: predictions and recommendations, kept with facts of runs, and held against the runs that came later."""
