"""People: who they are, what they may do, and the content of their Home."""
