"""The users of jobs' programs outside the sandbox."""

import pytest

from bot.jobserver.errors import JobServerError
from bot.jobserver.sandbox.job_users import JobUsers, ServersUser, job_users

ALL = "         0          0 4294967295\n"
CONTAINER = "0 100000 700000\n"
SMALL = "0 100000 65536\n"


def test_only_a_root_server_can_give_each_job_a_user() -> None:
    assert job_users(1000, ALL, ALL) == ServersUser()
    assert job_users(0, ALL, ALL) == JobUsers(1_900_000_000)


def test_a_container_has_fewer_user_ids() -> None:
    """Both users and groups count."""
    assert job_users(0, CONTAINER, CONTAINER) == JobUsers(200_000)
    assert job_users(0, ALL, SMALL) == job_users(0, SMALL, ALL) == ServersUser("this container has too few user ids")
    assert "this container has too few user ids" in str(job_users(0, SMALL, SMALL))


def test_a_user_id_belongs_to_one_job() -> None:
    """The first one is for folders without a job; the others are reused once all were used."""
    users = JobUsers(10, 4)
    assert users.unused([]) == 11
    assert users.unused([0, 11]) == 12
    assert users.unused([12]) == 13
    assert users.unused([11, 13]) == 12
    with pytest.raises(JobServerError, match="more jobs than user ids"):
        users.unused([11, 12, 13])
    assert [users.has(user) for user in (9, 10, 13, 14)] == [False, True, True, False]
