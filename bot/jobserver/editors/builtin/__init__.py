"""The built-in editor: the demo's, which knows four things and needs neither network nor model."""
