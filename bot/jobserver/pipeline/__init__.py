"""An instruction's way from the queue to its pull request, and what goes on beside it."""
