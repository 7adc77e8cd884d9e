"""The durable work: each loop takes rows that are due, does one thing with the world, and records what came of it."""
