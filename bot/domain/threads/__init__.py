"""The Slack threads of jobs, and which of their messages are for the job."""
