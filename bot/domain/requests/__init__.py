"""Requests: what people ask for, and how each is settled."""
