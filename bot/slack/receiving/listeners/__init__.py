"""One module per surface of Slack. A listener parses, makes one call that commits a row, and acknowledges."""
