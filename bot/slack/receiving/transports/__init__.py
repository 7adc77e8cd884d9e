"""The two ways in which Slack reaches Pagehand: Socket Mode, and signed HTTP requests."""
