"""The web page: what it talks to, and in `static` what the browser gets."""
