"""Reading what Slack sends: no part of it is trusted to be there, or to be of the type that is documented."""
