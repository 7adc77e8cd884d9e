"""The text that people read in Slack besides notices (bot.notices), in tables that can be read from top to bottom.

Each entry says what happened, what it means and what to do, in at most two short sentences. The modules of
`bot.slack.rendering` choose the entries and fill in their placeholders; a test checks them and the words of notices as
one page. Pagehand calls itself "I", and calls what is behind the job API "the agent".
"""
