"""Checks of the set-up, one module per subject. `pagehand doctor` and the running bot use them."""
