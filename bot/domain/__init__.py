"""Pagehand's concepts and decisions. Pure: no I/O, clock or environment."""
