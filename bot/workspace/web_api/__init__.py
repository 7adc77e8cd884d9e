"""The Web API: methods, authentication and rate limits."""
