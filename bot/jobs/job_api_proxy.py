"""The proxy for calls to the job API."""

from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from bot.errors import ConfigError
from bot.runtime.http.proxies import MALFORMED, is_this_machine, proxy_address


def job_api_proxy(base_url: str) -> httpx.Proxy | None:
    """Returns the environment's proxy; None for this machine itself and what NO_PROXY names.

    Raises:
        ConfigError: The proxy that would be used is neither http nor https.
    """
    # Not aiohttp's trust_env: it reads the environment in a thread for every request, and takes passwords from
    # ~/.netrc, which clash with our own Authorization.
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    proxies = getproxies()
    address = proxies.get(parts.scheme) or proxies.get("all")
    if not address or is_this_machine(host) or proxy_bypass(host):
        return None
    checked = proxy_address(address)
    try:
        return httpx.Proxy(checked)
    except (ValueError, httpx.InvalidURL):
        pass
    # Raised out here, since the library's own words quote the address.
    raise ConfigError([MALFORMED])
