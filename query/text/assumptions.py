"""What an answer takes for granted, in a sentence each."""
