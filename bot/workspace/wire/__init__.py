"""What Slack's payloads look like, read and written. Nothing here keeps a connection or waits for one."""
