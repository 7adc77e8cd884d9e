"""Checks of the setup, one module per subject. `pagehand doctor` and the running bot use them."""
