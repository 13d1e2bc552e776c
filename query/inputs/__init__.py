"""What lies in the files and folders that a user names, and how their containers are opened."""
