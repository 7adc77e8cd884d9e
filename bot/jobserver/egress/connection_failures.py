"""Why a model's address could not be reached, in words. Pure."""

import ssl

import aiohttp


def in_words(error: Exception) -> str:
    """Returns what went wrong: never an address of the proxy's, which may hold a password."""
    match error:
        case aiohttp.ClientConnectorCertificateError(certificate_error=ssl.SSLCertVerificationError() as why):
            fault = why.verify_message.rstrip(".")
            return f"its certificate is not trusted here ({fault}); SSL_CERT_FILE can name a CA of your own"
        case aiohttp.ClientProxyConnectionError():
            return "this server's own proxy does not answer"
        case aiohttp.ClientHttpProxyError():
            return f"this server's own proxy does not connect to it ({error.status})"
        case OSError() if error.strerror:
            return error.strerror
        case _:
            return type(error).__name__
