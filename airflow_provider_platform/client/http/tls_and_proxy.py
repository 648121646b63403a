"""How connections are made: which certificates are trusted, through which proxy, kept alive how."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from functools import lru_cache
from pathlib import Path
from urllib.request import getproxies, proxy_bypass

import certifi

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import PlatformConfigError
from airflow_provider_platform.client.formats.addresses import is_loopback


def tls_context(config: PlatformConfig) -> ssl.SSLContext:
    """The TLS settings of a configuration: system and bundled CAs, and the connection's own.

    Raises PlatformConfigError for a `ca_bundle` without certificates.
    """
    bundle = config.ca_bundle
    try:
        changed = bundle.stat().st_mtime_ns if bundle is not None else 0
        return _context(bundle, changed, config.verify_tls)
    except (OSError, ssl.SSLError):
        raise PlatformConfigError(
            "CA bundle (ca_bundle) contains no readable certificates.", field="ca_bundle"
        ) from None


@lru_cache(maxsize=8)
def _context(bundle: Path | None, _changed: int, verify: bool) -> ssl.SSLContext:
    """Shared, because each takes a tenth of a second to make and a megabyte to keep."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    if bundle is not None and bundle.is_dir():
        context.load_verify_locations(capath=str(bundle))
    elif bundle is not None:
        context.load_verify_locations(cafile=str(bundle))
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


@lru_cache(maxsize=1)
def unused_context() -> ssl.SSLContext:
    """What an HTTP client of a plain address is given: httpx would make one for each."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def proxy_for(
    config: PlatformConfig, scheme: str, host: str, port: int | None = None
) -> str | None:
    """The connection's proxy, else the system's, which never applies to this machine itself."""
    if config.proxy is not None:
        return config.proxy.get_secret_value()
    if is_loopback(host) or _bypasses_proxy(host, port or _PORTS[scheme]):
        return None
    proxies = getproxies()
    found = proxies.get(scheme) or proxies.get("all")
    return f"http://{found}" if found and "://" not in found else found


_PORTS = {"http": 80, "https": 443}


def _bypasses_proxy(host: str, port: int) -> bool:
    """Whether the system's rules except an address from its proxy: by name, with or without a port,
    as Python's own rules do, or by the range that it is in (`10.0.0.0/8`, `fd00::/8`). Ranges hold
    for addresses that are written as numbers; names are not looked up."""
    if proxy_bypass(host) or proxy_bypass(f"{host}:{port}"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return any(
        address in network
        for entry in getproxies().get("no", "").split(",")
        if (network := _network(entry.strip())) is not None
    )


def _network(entry: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """The addresses that an entry of NO_PROXY names by number."""
    try:
        return ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return None


def keep_alive_options() -> list[tuple[int, int, int]]:
    """Socket options for long streams: middleboxes forget connections that are idle."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, seconds in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), seconds))
    return options
