"""What differs from one installation to the next in Pagehand's words, and the help."""

from dataclasses import dataclass

from bot.slack.text import escape, person


@dataclass(frozen=True)
class Wording:
    """`command` is the slash command's name; `admin` a Slack user's id or words; `bot_user_id` is who to invite."""

    command: str = "/docs"
    admin: str = ""
    bot_user_id: str = ""

    @property
    def ask(self) -> str:
        """Whom to ask, as markup."""
        return person(self.admin) if self.admin else "whoever installed Pagehand"

    @property
    def bot(self) -> str:
        """Pagehand, as markup."""
        return person(self.bot_user_id) if self.bot_user_id else "@Pagehand"

    @property
    def slash(self) -> str:
        """The command, as markup."""
        return f"`{escape(self.command)}`"


def unknown_job(wording: Wording) -> str:
    """The answer to a reply below a card of which there is no record that can be used."""
    return (
        "Your reply was not sent: Pagehand has no usable record of this job any more. Records are deleted some months "
        f"after a job's end, or on request. Start a new one with {wording.slash}."
    )


def help_text(wording: Wording) -> str:
    """The answer to the command alone, and to its `help`."""
    command = escape(wording.command)
    return "\n".join(
        (
            "*Pagehand hands a documentation task to an agent and brings back the pull request.*",
            f'• Start: `{command} Replace "colour" with "color" in the guides`. A card shows how it goes.',
            "• Steer: reply in the card's thread. Each reply goes to the same job.",
            "• Talk among yourselves there: begin the reply with `//`, and it is not sent.",
            "• Marks on a reply: :eyes: noted down, :white_check_mark: passed on, :warning: see the thread.",
        )
    )
