"""Slack's hosts: the proxy for calls to them, and comparing URLs by them. By default, slack-sdk uses HTTP(S)_PROXY for
all hosts, even those in NO_PROXY.
"""

from urllib.parse import urlsplit
from urllib.request import proxy_bypass

from slack_sdk.proxy_env_variable_loader import load_http_proxy_from_env

from bot.runtime.http.proxies import is_this_machine, proxy_address


def slack_proxy(url: str) -> str | None:
    """Returns the proxy's URL; None for this machine itself and the hosts in NO_PROXY.

    Raises:
        ConfigError: The proxy that would be used is neither http nor https.
    """
    host = urlsplit(url).hostname or ""
    if is_this_machine(host) or proxy_bypass(host):
        return None
    address = load_http_proxy_from_env()
    return proxy_address(address) if address else None


def origin(url: str) -> str:
    """Returns the scheme, host and port for comparison; empty if it is not a web URL, or contains a user name."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"https": 443, "http": 80}[parts.scheme]
    except (KeyError, ValueError):
        return ""
    return f"{parts.scheme}://{parts.hostname}:{port}" if parts.hostname and "@" not in parts.netloc else ""
