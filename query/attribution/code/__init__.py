"""From the frames of a stack to the function that decides what its time went to."""
