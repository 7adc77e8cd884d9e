"""The job API's edge: its wire format, its errors, and the client."""
