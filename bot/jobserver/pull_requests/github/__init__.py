"""Pull requests at GitHub and GitHub Enterprise."""
