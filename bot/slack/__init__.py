"""Slack's edge: what people say to Pagehand there, and what it says to them."""
