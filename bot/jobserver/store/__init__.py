"""The job server's database: jobs, their instructions, and the responses stored for Idempotency-Keys."""
