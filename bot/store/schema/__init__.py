"""The tables, how rows and values become each other, and the schema's versions."""
