"""Support for open modals: opening and filling them, and saving typed text."""
