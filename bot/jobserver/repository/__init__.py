"""The git repository that jobs work on."""
