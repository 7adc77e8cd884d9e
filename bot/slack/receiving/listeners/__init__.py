"""One module a surface of Slack's. A listener parses, makes one call that commits a row, and acknowledges."""
