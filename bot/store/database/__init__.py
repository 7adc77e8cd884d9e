"""Databases: their addresses, engines and errors, and how transactions run in them."""
