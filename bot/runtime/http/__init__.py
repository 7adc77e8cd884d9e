"""HTTP as every part serves and calls it."""
