"""One module for each kind of thing that Slack reports. A listener parses, makes one call that commits a row, and
acknowledges.
"""
