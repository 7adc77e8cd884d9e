"""The bot put together: settings, edges, roles, start-up and shutdown."""
