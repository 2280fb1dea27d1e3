"""Certificates made on the spot, by an authority that nobody but the test knows. Needs the ``openssl`` command."""

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority; ``ca_file`` is what a client must trust."""

    folder: Path
    name: str

    @property
    def ca_file(self) -> Path:
        return self.folder / f"{self.name}.pem"

    def serving(self, name: str, subject: str, days: int = 1) -> ssl.SSLContext:
        """What a server needs for a certificate on ``subject`` (``IP:127.0.0.1``); with -1 days it has run out."""
        key, request, certificate, extensions = (self.folder / f"{name}.{end}" for end in ("key", "csr", "pem", "ext"))
        extensions.write_text(f"subjectAltName={subject}\nauthorityKeyIdentifier=keyid\n")
        _openssl("req", *_NEW_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        _openssl("x509", "-req", "-in", request, "-out", certificate, "-days", days, "-extfile", extensions,
                 "-CA", self.ca_file, "-CAkey", self.ca_file.with_suffix(".key"), "-CAcreateserial")  # fmt: skip
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        return context


def make_authority(folder: Path, name: str) -> Authority:
    """Make an authority whose files are in ``folder``."""
    made = Authority(folder, name)
    _openssl("req", "-x509", *_NEW_KEY, "-keyout", made.ca_file.with_suffix(".key"), "-out", made.ca_file,
             "-subj", f"/CN={name}", "-days", 2, "-addext", "keyUsage=critical,keyCertSign")  # fmt: skip
    return made


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def _openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
