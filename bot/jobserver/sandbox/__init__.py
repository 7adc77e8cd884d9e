"""Where foreign programs run: what they can see, reach and use up."""
