"""The projects' settings: from the environment, and from the file that has several."""
