"""Assembles the bot: settings, edges, roles, start-up and shutdown."""
