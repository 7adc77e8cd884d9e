"""What a change would give away: keys, tokens and passwords that are not in the repository yet."""
