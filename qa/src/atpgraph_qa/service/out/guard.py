"""No requests to private addresses: a webhook must not reach what only this machine can reach."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from atpgraph.errors import AtpError

# Translated to an IPv4 address that may be private (NAT64, 6to4, IPv4-compatible), or site-local.
_NOT_PUBLIC = tuple(
    map(ipaddress.ip_network, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "::/96", "fec0::/10"))
)
Resolve = Callable[[str, int], list[str]]


class RefusedError(AtpError):
    """An address that must not be contacted."""


def resolve(host: str, port: int) -> list[str]:
    """All addresses of a host."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_public(address: str) -> bool:
    """Whether an address is one that anybody can reach.

    Examples
    --------
    >>> [is_public(a) for a in ("93.184.216.34", "10.0.0.1", "127.0.0.1", "::ffff:127.0.0.1")]
    [True, False, False, False]
    """
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return is_public(str(parsed.ipv4_mapped))
        if any(parsed in network for network in _NOT_PUBLIC):
            return False
    return parsed.is_global and not parsed.is_multicast


def checked_address(
    url: str, allowed: Collection[str] = (), resolver: Resolve = resolve
) -> tuple[str, str, int]:
    """Address to connect to, host and port of a URL; :class:`RefusedError` if it is private.

    The caller connects to the address that was checked, not to the name, which may mean another
    one a moment later.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not host:
        raise RefusedError("The address is not one of http or https.")
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        addresses = resolver(host, port)
    except (OSError, ValueError, UnicodeError):
        raise RefusedError("The host does not resolve.") from None
    if not addresses:
        raise RefusedError("The host does not resolve.")
    if host not in allowed and not all(is_public(address) for address in addresses):
        raise RefusedError("The host has a private address; allow it by deliver.allow_private.")
    return addresses[0], host, port
