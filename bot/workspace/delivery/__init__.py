"""What the app is sent, over Socket Mode or signed HTTP, and what comes back."""
