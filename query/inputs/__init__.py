"""Discovery of logs and recordings in the user's files, folders and URLs, and readers of their containers."""
