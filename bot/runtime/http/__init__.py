"""HTTP: the server that every program uses, and rules for clients."""
