"""Notices: what Pagehand owes a thread, each kind of message a type, named for what happened."""
