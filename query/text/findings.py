"""What cost time, in a sentence each."""
