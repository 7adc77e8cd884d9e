"""Parses what people type: the slash command, its options, and words for Pagehand itself."""
