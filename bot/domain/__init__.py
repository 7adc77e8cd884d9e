"""What Pagehand knows and decides: pure, with no input, output, clock or environment."""
