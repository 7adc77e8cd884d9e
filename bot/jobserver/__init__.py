"""The job API, self-hosted: a job edits a real git repository and ends in a pull request.

It stands alone: nothing of the bot is needed to run it, and any client of the job API can use it.
"""
