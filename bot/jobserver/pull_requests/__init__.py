"""Where a job's branch becomes a pull request."""
