"""All text that people read in Slack, and the blocks around it. Pure."""
