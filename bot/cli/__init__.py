"""The commands of `pagehand`."""
