"""Databases: URLs, engines, errors, and running transactions."""
