"""The proxy for calls to Slack. slack-sdk by itself takes HTTP(S)_PROXY for everything, even what NO_PROXY names."""

from urllib.parse import urlsplit
from urllib.request import proxy_bypass

from slack_sdk.proxy_env_variable_loader import load_http_proxy_from_env

from bot.runtime.http.proxies import is_this_machine, proxy_address


def slack_proxy(url: str) -> str | None:
    """Returns the proxy's address; None for this machine itself and what NO_PROXY names.

    Raises:
        ConfigError: The proxy that would be used is neither http nor https.
    """
    host = urlsplit(url).hostname or ""
    if is_this_machine(host) or proxy_bypass(host):
        return None
    address = load_http_proxy_from_env()
    return proxy_address(address) if address else None
