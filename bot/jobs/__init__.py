"""The job API's edge: its wire format, its faults, and the client."""
