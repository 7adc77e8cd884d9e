"""What a workspace is: people, channels, messages, the app, and Slack's rules about them. No I/O."""
