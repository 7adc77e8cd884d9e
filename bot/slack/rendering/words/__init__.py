"""All words that people read in Slack, one table of several pages, to be read from top to bottom.

Each entry says what happened, what it means and what to do, in at most two short sentences. The modules of
`bot.slack.rendering` decide which of them is said, and with what in its gaps; a test renders the table as one page.
Pagehand says "I"; what stands behind the job API is "the agent".
"""
