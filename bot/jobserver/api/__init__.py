"""The job API over HTTP, and the document that describes it."""
