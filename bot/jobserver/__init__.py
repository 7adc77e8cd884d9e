"""A self-hosted job API: a job edits a real git repository and ends in a pull request.

It is independent of the bot, and any client of the job API can use it.
"""
