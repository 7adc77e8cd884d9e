"""Times in which nobody listened to Slack, and what is read in its history afterwards."""
