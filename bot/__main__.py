"""Runs the command line with `python -m bot`."""

from bot.cli.main import main

main()
