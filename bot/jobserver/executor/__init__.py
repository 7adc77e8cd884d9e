"""Executes instructions: schedules them, runs the editor, publishes and describes the change."""
