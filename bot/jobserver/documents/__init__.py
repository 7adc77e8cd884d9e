"""Pages and settings of documentation, as text: for the built-in editor, the checks and what is told of a change."""
