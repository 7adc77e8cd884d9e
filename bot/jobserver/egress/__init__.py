"""What programs in the sandbox reach outside: nothing, but by what is allowed here."""
