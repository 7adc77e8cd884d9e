"""Documentation pages and their navigation, parsed: Markdown, MDX, front matter, links, anchors, prose."""
