"""Setting up: the app's manifest, the app in Slack, a first message through it, and the file with the settings."""
