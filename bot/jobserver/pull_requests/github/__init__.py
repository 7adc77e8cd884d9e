"""Pull requests at GitHub or GitHub Enterprise."""
