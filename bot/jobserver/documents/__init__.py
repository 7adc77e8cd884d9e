"""Pages of documentation, parsed once: for the built-in editor, the checks and the titles of changed pages."""
