"""What the lab borrows from one Linux machine, and what the machine itself says of a run."""
