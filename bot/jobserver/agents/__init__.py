"""Coding agents, driven by the Agent Client Protocol."""
