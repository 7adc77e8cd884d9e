"""The bot's settings: from the environment, and from the projects file."""
