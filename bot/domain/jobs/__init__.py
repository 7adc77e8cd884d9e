"""Jobs: what a poll observes, what follows from it, and how often jobs are polled."""
