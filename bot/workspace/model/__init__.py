"""The workspace's data, people, channels, messages and the app, with Slack's rules. No I/O."""
