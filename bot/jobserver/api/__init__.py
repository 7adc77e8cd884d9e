"""The job API over HTTP, and its OpenAPI document."""
