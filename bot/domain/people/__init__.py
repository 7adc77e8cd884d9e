"""People: who they are, what they may do, and what their Home shows."""
