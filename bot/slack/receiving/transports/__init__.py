"""The two transports over which Slack reaches Pagehand: Socket Mode and signed HTTP requests."""
