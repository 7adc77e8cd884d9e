"""Jobs: what a poll shows, what follows from it, and how often jobs are polled."""
