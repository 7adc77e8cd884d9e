"""What Slack sends: taken in by a transport, filtered, given to a listener, recorded, acknowledged."""
