"""Preparing a request before it is sent: permission, project and context, and the outcome."""
