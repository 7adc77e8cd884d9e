"""Checks of a change before it is proposed: links, style, and the team's own."""
