"""The handlers of the routes: each parses a request, queries the core and returns a response."""
