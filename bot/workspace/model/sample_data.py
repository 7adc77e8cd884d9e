"""The people and channels of a new workspace: enough to try every access rule."""

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Channel, Team, User, UserGroup
from bot.workspace.model.state import SLACKBOT, State

HOME = Team("T0LOCAL01", "Local workspace", "local")
PARTNER = Team("T0PARTNER", "Partner Ltd", "partner")
ANA = User("U0ANA0001", "ana", "Ana Silva", HOME.id, color="2b6cb0", is_admin=True)
BEN = User("U0BEN0001", "ben", "Ben Okafor", HOME.id, color="975a16")
GIA = User("U0GIA0001", "gia", "Gia Rossi (guest)", HOME.id, color="276749", is_restricted=True)
EMIL = User("U0EMIL001", "emil", "Emil Novak", PARTNER.id, color="97266d")
WRITERS = UserGroup("S0WRITERS", "writers", "Technical writers", (ANA.id, BEN.id))


def populate(state: State, app: AppConfig) -> None:
    """Adds the people, the app's bot, and channels of every kind.

    The bot is in #docs and #partners (shared with Emil's team) and has a direct conversation with each member of the
    home team. It is in neither #general (public) nor #leads (private).
    """
    state.teams[PARTNER.id] = PARTNER
    for user in (ANA, BEN, GIA, EMIL):
        state.add_user(user)
    state.add_user(User(SLACKBOT, "slackbot", "Slackbot", HOME.id, color="757575", is_bot=True))
    state.groups[WRITERS.id] = WRITERS
    state.add_user(User(app.bot_user_id, app.name, app.display_name, HOME.id, color="1f7a5c", is_bot=True))
    everyone = [ANA.id, BEN.id, GIA.id]
    created = int(state.now())
    for channel in (
        Channel("C0DOCS001", "docs", created, ANA.id, topic="Documentation", members=[*everyone, app.bot_user_id]),
        Channel("C0GENERAL", "general", created, ANA.id, topic="For everyone", members=[ANA.id, BEN.id]),
        Channel("C0LEADS01", "leads", created, BEN.id, is_private=True, members=[ANA.id, BEN.id]),
        Channel(
            "C0PARTNER", "partners", created, ANA.id, is_ext_shared=True, members=[ANA.id, EMIL.id, app.bot_user_id]
        ),
    ):
        state.add_channel(channel)
    for user_id in everyone:
        state.direct_channel(app.bot_user_id, user_id)
