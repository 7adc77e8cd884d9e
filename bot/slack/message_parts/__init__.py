"""Reading what a message of Slack's holds, wherever it comes from: an event, a shortcut, a thread that was read. Any
field can be missing or of another type; all that is kept is bounded, and cleaned of what misleads.
"""
