"""The answers: their values, the verdict on a run, the sentences that every door says of them, and their JSON."""
