"""Certificates of this machine, for servers and clients that are tested over TLS."""

from __future__ import annotations

import datetime as dt
import ipaddress
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

if TYPE_CHECKING:
    from pathlib import Path


def certificates(folder: Path) -> dict[str, str]:
    """A certificate of this machine, which its own authority signed, in files."""
    folder.mkdir()
    authority, own = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, folder.name)])
    now = dt.datetime.now(dt.UTC)

    def signed(name: x509.Name, key: ec.EllipticCurvePrivateKey, *, ca: bool) -> bytes:
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        here = x509.SubjectAlternativeName([address, x509.DNSName("localhost")])
        made = (
            x509.CertificateBuilder(issuer, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(here, critical=False)
            .sign(authority, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM)

    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    private = own.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    made = {
        "ca": signed(issuer, authority, ca=True),
        "cert": signed(subject, own, ca=False),
        "key": private,
    }
    for name, text in made.items():
        (folder / f"{name}.pem").write_bytes(text)
    return {name: str(folder / f"{name}.pem") for name in made}
