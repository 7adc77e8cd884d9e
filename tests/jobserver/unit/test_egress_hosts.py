"""Which hosts programs may connect to: names, addresses, and what is reported about refused ones."""

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.jobserver.egress.addresses import is_public, may_be_internal
from bot.jobserver.egress.proxy import MOST_NAMES, UNREADABLE, EgressRefusals
from bot.jobserver.settings.sandbox import (
    AllowedHost,
    SandboxSettings,
    allowed_host,
    find_allowed,
    host_and_port,
    host_name,
)

pytestmark = pytest.mark.promise("egress")


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Example.COM", "example.com"),
        ("example.com.", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("\N{FULLWIDTH LATIN CAPITAL LETTER E}xample.com", "example.com"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("gateway", "gateway"),
    ],
)
def test_a_host_name_is_normalized(written: str, name: str) -> None:
    assert host_name(written) == name


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0x7f.1", "1.2.3.0x", "127.0.0.1.", "[::1]",
        "::1", "[::ffff:127.0.0.1]", "fe80::1%eth0", "\N{FULLWIDTH DIGIT ONE}27.0.0.1", "example.123",
    ],
)  # fmt: skip
def test_an_address_in_any_spelling_is_not_a_name(address: str) -> None:
    with pytest.raises(ValueError, match=r"^(is not a host name|must be a name, not an address)$"):
        host_name(address)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "a..b",
        "-a.example",
        "a-.example",
        "a b",
        "a/b",
        "a@b",
        "user:pw@a",
        "*.example.com",
        "a\r\nb",
        "é" * 300,
    ],
)
def test_an_invalid_name_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a host name"):
        host_name(text)


@pytest.mark.parametrize("text", ["a.example", "a.example:", "a.example:0", "a.example:65536", "a.example:٣", "a:1 "])
def test_a_target_has_a_port(text: str) -> None:
    with pytest.raises(ValueError, match="must be a name and a port"):
        host_and_port(text)


@given(st.text(max_size=300))
def test_any_text_is_a_target_or_refused(text: str) -> None:
    try:
        name, port = host_and_port(text)
    except ValueError:
        return
    assert host_and_port(f"{name}:{port}") == (name, port)
    assert name.isascii()
    assert 0 < port < 2**16


def test_only_listed_hosts_match() -> None:
    allowed = [allowed_host("registry.example:443"), allowed_host("private:gateway.internal:8080")]
    assert allowed[1] == AllowedHost("gateway.internal", 8080, may_be_private=True)
    assert find_allowed(allowed, "registry.example", 443) == allowed[0]
    assert find_allowed(allowed, "registry.example", 80) is None
    assert find_allowed(allowed, "sub.registry.example", 443) is None


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("open", "open"),
        ("none", ()),
        ("a.example:443, private:b.example:80", (AllowedHost("a.example", 443), AllowedHost("b.example", 80, True))),
    ],
)
def test_the_setting_lists_hosts(written: str, means: object) -> None:
    assert SandboxSettings.model_validate({"egress": written}).egress == means


@pytest.mark.parametrize("written", ["open a.example:443", "a.example", "1.2.3.4:443", "none none"])
def test_an_invalid_host_setting_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="egress"):
        SandboxSettings.model_validate({"egress": written})


NOT_PUBLIC = (
    "10.1.2.3", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "192.0.0.1", "192.0.2.1",
    "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1",
    "255.255.255.255", "::", "::1", "::7f00:1", "::ffff:8.8.8.8", "::ffff:0:8.8.8.8", "64:ff9b::808:808",
    "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "fc00::1", "fd00:ec2::254", "fe80::1",
    "fec0::1", "ff02::1", "4000::1", "168.63.129.16", "100.100.100.200", "nonsense", "127.0.0.1 ",
    "fe80::1%eth0", "0.0.0.0",  # noqa: S104 - an address that is refused
)  # fmt: skip


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_non_public_addresses_are_classified(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "93.184.215.14", "2606:4700::1111", "2a00:1450:4001::1"])
def test_public_addresses_are_recognized(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses())
def test_no_special_address_of_python_is_public(address: IPv4Address | IPv6Address) -> None:
    special = (
        address.is_private, address.is_loopback, address.is_link_local, address.is_multicast, address.is_reserved,
        address.is_unspecified,
    )  # fmt: skip
    assert not (is_public(str(address)) and any(special))


METADATA = (
    "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:42::42", "fd00:ec2::254", "fd00:ec2:0:0:0:0:0:254",
    "fd20:ce::254",
)  # fmt: skip


def test_a_private_host_may_be_local_but_no_metadata_service() -> None:
    assert [may_be_internal(each) for each in ("10.0.0.1", "127.0.0.1", "::1", "fd00::1", "8.8.8.8")] == [True] * 5
    never = ("169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "224.0.0.1", "0.0.0.0", "64:ff9b::a9fe:a9fe", "x")  # noqa: S104 - an address that is refused
    assert not any(map(may_be_internal, (*METADATA, *never)))


def test_a_refused_host_is_reported_once_by_its_name() -> None:
    """Never more than a few names, whatever a program asks for, and nothing that is not a name."""
    refusals = EgressRefusals()
    assert (refusals.in_words, refusals.after("it failed.")) == ((), "it failed.")
    for _ in range(3):
        refusals.refused("Example.com", 443)
    refusals.refused("other.example", 8080)
    refusals.refused("<script>\n", 80)
    told = f"It tried to reach example.com, other.example:8080, {UNREADABLE}: not allowed here."
    assert refusals.in_words == (told,)
    assert refusals.after("it failed.") == f"it failed. {told}"
    assert refusals.in_log[0] == "refused: example.com (3)"
    for number in range(1000):
        refusals.refused(f"n{number}.example")
    (words,) = refusals.in_words
    assert words.endswith(" and 998 more: not allowed here.")
    assert len(refusals.in_log) == MOST_NAMES + 1
