"""The job server's database: jobs, their instructions, and answers that are kept for an Idempotency-Key."""
