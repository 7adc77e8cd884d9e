"""All words that people read in Slack, and the blocks around them. Pure."""
