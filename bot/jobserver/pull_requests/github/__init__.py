"""Pull requests at GitHub and GitHub Enterprise.

The client is gidgethub: it is maintained by GitHub's and Python's own people, does no I/O itself (so that time
limits, redirects and the size of an answer stay ours), and knows headers, errors, pages and the JWTs of Apps. The
alternative, githubkit, brings models of the whole API: some ten thousand lines for the eleven calls that are made here.
"""
