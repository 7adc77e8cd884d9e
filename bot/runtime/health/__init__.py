"""How well things go: what fails, since when, and what is told of it."""
