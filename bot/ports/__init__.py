"""The ports: what the rules need from the world. Each has a real implementation and a fake."""
