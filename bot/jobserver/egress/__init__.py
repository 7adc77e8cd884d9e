"""What programs in the sandbox can reach outside: only what is allowed here."""
