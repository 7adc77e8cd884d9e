"""Reads pull requests at code hosts, for bot and job server. Nothing here writes."""
