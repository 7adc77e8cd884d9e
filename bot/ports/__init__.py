"""The ports: what the rules need of the world. Each has a real implementation and a fake."""
