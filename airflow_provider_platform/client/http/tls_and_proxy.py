"""How connections are made: trusted certificates, proxy, TCP keep-alive."""

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
from airflow_provider_platform.client.formats.addresses import is_loopback, passwords_in


def tls_context(config: PlatformConfig) -> ssl.SSLContext:
    """Return the TLS context of a configuration: system CAs, bundled CAs and the connection's own.
    Raises PlatformConfigError if `ca_bundle` has no certificates.
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
    """Return a cached TLS context: a new one takes a tenth of a second and a megabyte."""
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
    """Return a TLS context for HTTP clients that use plain http: httpx would create one for
    each."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def proxy_for(
    config: PlatformConfig, scheme: str, host: str, port: int | None = None
) -> str | None:
    """Return the connection's proxy, otherwise the system's. The system's proxy never applies to
    this machine itself."""
    if config.proxy is not None:
        return config.proxy.get_secret_value()
    if is_loopback(host) or _bypasses_proxy(host, port or _PORTS[scheme]):
        return None
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def system_proxy_passwords() -> list[str]:
    """Return the passwords of the proxies that the environment names."""
    return [password for proxy in getproxies().values() for password in passwords_in(proxy)]


_PORTS = {"http": 80, "https": 443}


def _bypasses_proxy(host: str, port: int) -> bool:
    """Return whether NO_PROXY exempts an address: by name, with or without a port, as in Python's
    own rules, or by a range (`10.0.0.0/8`, `fd00::/8`). Ranges apply only to numeric addresses;
    names are not resolved."""
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
    """Return the network of a numeric NO_PROXY entry."""
    try:
        return ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return None


def keep_alive_options() -> list[tuple[int, int, int]]:
    """Return the socket options for long streams: middleboxes drop idle connections."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, seconds in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), seconds))
    return options
