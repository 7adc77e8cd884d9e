"""Metrics of the bot: counted at its edges, read from the database when they are asked for."""
