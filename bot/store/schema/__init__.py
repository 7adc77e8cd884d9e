"""The tables, the conversion between rows and values, and the schema's versions."""
