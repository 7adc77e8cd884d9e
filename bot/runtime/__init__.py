"""What every program of Pagehand runs on, whatever it does."""
