"""Deliveries to the app, over Socket Mode or signed HTTP, and what its answers do."""
