"""The web page: its endpoints, and in `static` the files for the browser."""
