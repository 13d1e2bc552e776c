"""Why a question has no answer, in a sentence each."""
