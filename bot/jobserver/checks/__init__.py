"""Checks of a change before it is proposed: links, navigation, front matter, style, and the team's own."""
