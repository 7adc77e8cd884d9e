"""What all tables have in common: how their constraints are named, and what a time is."""

from sqlalchemy import CheckConstraint, MetaData

LAST_TIME = 100_000_000_000
"""No time beyond this one (the year 5138) is a time; refuses NaN and infinity too."""

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
    }
)


def time_check(column: str) -> CheckConstraint:
    """The column holds a time, or nothing."""
    return CheckConstraint(f"{column} BETWEEN 0 AND {LAST_TIME}", name=column)
