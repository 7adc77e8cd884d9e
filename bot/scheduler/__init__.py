"""The durable work: each worker claims due rows, calls Slack or the job API, and records the result."""
