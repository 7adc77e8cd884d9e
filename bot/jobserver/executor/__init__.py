"""Executes instructions: schedules them, runs the editor, and publishes the change."""
