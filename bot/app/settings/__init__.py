"""What the environment and the projects' file say."""
