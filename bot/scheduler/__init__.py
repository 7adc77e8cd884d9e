"""The durable work: each worker claims rows that are due, calls Slack or the job API, and records what came of it."""
