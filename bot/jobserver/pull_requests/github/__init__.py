"""Pull requests at GitHub and GitHub Enterprise.

The client is githubkit, behind `GitHubTransport`: gidgethub is only maintained since September 2026. Its connections
are ours, so that time limits, redirects and the size of an answer stay ours, too, and so are the models of answers: its
own refuse values that GitHub sends.
"""
