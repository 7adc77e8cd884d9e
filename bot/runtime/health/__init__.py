"""Health: what is failing and since when, and how that is reported."""
