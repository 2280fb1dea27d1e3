"""Validate values that concern the network: addresses, URLs, headers, secrets and certificates."""

import ipaddress
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator
from typing_extensions import override  # in typing from 3.12 on

from auditor.config.values import ResolvedPath, Section, quote

_HOST: Final = re.compile(r"[A-Za-z0-9._-]{1,253}", re.ASCII)
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}", re.ASCII)


class Address(Section):
    """The address of a server."""

    host: str
    """A host name or an IP address; empty: all interfaces."""
    port: Annotated[int, Field(ge=0, le=65535)]
    """The port; 0: the system chooses one."""

    @model_validator(mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return _split_address(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_host(self) -> "Address":
        if self.host and not _is_ip(self.host) and not _HOST.fullmatch(self.host):
            raise ValueError(f"{quote(self.host)} is not a host name or an IP address")
        return self

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the address."""
        if _is_ip(self.host):
            return ipaddress.ip_address(self.host).is_loopback
        return self.host == "localhost"

    @override
    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def _split_address(text: str) -> dict[str, str]:
    host, colon, port = text.strip().rpartition(":")
    if not colon or not re.fullmatch(r"\d{1,5}", port, re.ASCII):
        raise ValueError("must be host:port, such as 127.0.0.1:4000, [::1]:4000, or :4000 for all interfaces")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError("an IPv6 address needs brackets: [::1]:4000")
    return {"host": "" if host == "*" else host, "port": port}


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _check_secret(secret: SecretStr) -> SecretStr:
    value = secret.get_secret_value()
    if not value:
        raise ValueError("is empty")
    if not (value.isascii() and value.isprintable()) or " " in value:
        raise ValueError("contains a space, a line break or a character that an HTTP header cannot hold")
    return secret


def _split_url(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        _ = parts.port  # read late by the library, and only then refused
    except ValueError:
        raise ValueError("is not a URL") from None
    if parts.scheme not in {"http", "https"}:
        raise ValueError("must start with http:// or https://")
    if not parts.hostname or not (text.isascii() and text.isprintable()) or " " in text:
        raise ValueError("is not a URL: it needs a host, and no spaces")
    return parts


def _check_base_url(text: str) -> str:
    checked = _check_collector_url(text)
    return checked if urlsplit(checked).path else f"{checked}/v1"


def _check_collector_url(text: str) -> str:
    parts = _split_url(text)
    if parts.username is not None or parts.password is not None:
        raise ValueError("contains a user name or password; put a key under api_key")
    if parts.query or parts.fragment:
        raise ValueError("must not end with a query or fragment, because paths are appended to it")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _check_public_url(text: str) -> str:
    parts = _split_url(text)
    if parts.scheme != "https":
        raise ValueError("must start with https://, because people send their keys to it")
    if parts.username is not None or parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise ValueError("must be a scheme and a host, such as https://bias.example.org")
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _check_webhook_url(secret: SecretStr) -> SecretStr:
    _split_url(secret.get_secret_value())
    return secret


def plain_headers(headers: Mapping[str, SecretStr]) -> dict[str, str]:
    """Return headers as they are sent."""
    return {name: value.get_secret_value() for name, value in headers.items()}


def _check_headers(headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
    for name, value in plain_headers(headers).items():
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"{quote(name)} is not the name of a header")
        if not (value.isascii() and value.isprintable()) or value != value.strip():
            raise ValueError(f"the value of {quote(name)} contains a character that an HTTP header cannot hold")
    return headers


def _check_header_name(name: str) -> str:
    if not _HEADER_NAME.fullmatch(name):
        raise ValueError(f"{quote(name)} is not the name of a header")
    return name.lower()


def _check_certificates(path: Path) -> Path:
    try:
        held = ssl.create_default_context(cafile=path).cert_store_stats()["x509"]
    except ssl.SSLError:
        held = 0
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"cannot be read: {reason}") from None
    if not held:
        raise ValueError("contains no certificates (PEM)")
    return path


ApiVersion = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
Secret = Annotated[SecretStr, AfterValidator(_check_secret)]
BaseUrl = Annotated[str, AfterValidator(_check_base_url)]
CollectorUrl = Annotated[str, AfterValidator(_check_collector_url)]
PublicUrl = Annotated[str, AfterValidator(_check_public_url)]
WebhookUrl = Annotated[SecretStr, AfterValidator(_check_webhook_url)]
Headers = Annotated[dict[str, SecretStr], AfterValidator(_check_headers)]
HeaderName = Annotated[str, AfterValidator(_check_header_name)]
CertificatesFile = Annotated[ResolvedPath, AfterValidator(_check_certificates)]
