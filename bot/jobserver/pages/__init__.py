"""The web pages of the local pull requests."""
