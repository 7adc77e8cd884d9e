"""Notices: what Pagehand owes a thread. Each kind of message is a type, named after what happened."""
