"""What comes from Slack: each listener parses, makes one call that commits a row, and acknowledges."""
