"""What modals need while people have them before them: they are opened, filled, and what is typed is kept."""
