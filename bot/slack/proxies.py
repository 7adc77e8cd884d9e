"""Which proxy a call goes through: slack-sdk takes HTTP(S)_PROXY for everything, even what NO_PROXY names."""

import ipaddress
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

from slack_sdk.proxy_env_variable_loader import load_http_proxy_from_env


def proxy_for(url: str) -> str | None:
    """The proxy's address; None for this machine itself and what NO_PROXY names."""
    host = urlsplit(url).hostname or ""
    if _is_this_machine(host) or proxy_bypass(host):
        return None
    return load_http_proxy_from_env()


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
