"""Controls what programs in the sandbox can reach on the network."""
