"""Finding out about a request before it is sent, and what follows from it."""
