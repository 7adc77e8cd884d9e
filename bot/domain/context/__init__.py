"""The context that the agent gets besides a person's own words: threads, forwarded messages, files."""
