"""What people type: the slash command, its options, and the words for Pagehand itself."""
