"""The Slack threads of jobs, and which messages there are for a job."""
