"""The settings of projects: from the environment, and from the projects file, which lists several."""
