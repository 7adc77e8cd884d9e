"""Isolates foreign programs: what they can see, reach and use up."""
