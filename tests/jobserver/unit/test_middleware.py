"""Which names the job server answers to, and which origins are its own."""

from hypothesis import given
from hypothesis import strategies as st

from bot.jobserver.middleware import allowed_hosts, host_name, is_same_origin


@given(st.text())
def test_any_host_header_is_a_name_or_nothing(header: str) -> None:
    assert isinstance(host_name(header), str)


def test_our_own_names_and_origins_are_accepted() -> None:
    hosts = allowed_hosts("192.0.2.1", "https://Jobs.example:8443/x")
    assert hosts == {"127.0.0.1", "localhost", "::1", "192.0.2.1", "jobs.example"}
    public = "https://jobs.example:8443"
    assert is_same_origin("https://jobs.example:8443", "127.0.0.1:1", public)
    assert is_same_origin("http://127.0.0.1:1", "127.0.0.1:1", public)
    for origin in (None, "", "null", "https://jobs.example", "http://127.0.0.1", "https://127.0.0.1:1"):
        assert not is_same_origin(origin, "127.0.0.1:1", public)
