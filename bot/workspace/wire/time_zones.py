"""Where on earth a person is, as ``users.info`` tells it."""

from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.workspace.model.entities import Json


def time_zone_fields(name: str, now: float) -> Json:
    """Returns the zone, its name and its offset in seconds. One that this machine does not know counts as UTC."""
    try:
        zone = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return {"tz": "Etc/UTC", "tz_label": "Coordinated Universal Time", "tz_offset": 0}
    moment = datetime.fromtimestamp(now, zone)
    offset = moment.utcoffset()
    label = "Coordinated Universal Time" if name == "Etc/UTC" else moment.tzname() or name
    return {"tz": name, "tz_label": label, "tz_offset": int(offset.total_seconds()) if offset else 0}
