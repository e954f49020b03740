"""Names in a client certificate, in the notation of the access file."""

from __future__ import annotations

import functools

from cryptography import x509


@functools.lru_cache(maxsize=1024)
def names_in(certificate: bytes) -> tuple[str, ...]:
    """Return the names in *certificate* (DER); an empty tuple if it cannot be parsed.

    They are the subject as in RFC 4514 (`CN=orders,O=Example`) and alternative names as `dns:…`, `uri:…`, `email:…`.
    """
    try:
        parsed = x509.load_der_x509_certificate(certificate)
        subject = parsed.subject.rfc4514_string()
        alternative = _alternative_names(parsed)
    except ValueError:
        return ()
    return (*([subject] if subject else []), *alternative)


def _alternative_names(certificate: x509.Certificate) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [
        *(f"dns:{name}" for name in names.get_values_for_type(x509.DNSName)),
        *(f"uri:{name}" for name in names.get_values_for_type(x509.UniformResourceIdentifier)),
        *(f"email:{name}" for name in names.get_values_for_type(x509.RFC822Name)),
    ]
