"""What happens to an instruction: when its turn comes, how it is executed, and how the change is described."""
