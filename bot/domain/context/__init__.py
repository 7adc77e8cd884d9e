"""What goes to the agent beside a person's own words: threads, forwarded messages, files."""
