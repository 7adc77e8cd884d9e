"""Pull requests stored beside the repository, with real merges, for people without a code host."""
