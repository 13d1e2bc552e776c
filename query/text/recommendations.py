"""What can be done, in a sentence each."""
