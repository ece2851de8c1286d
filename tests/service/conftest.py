"""An authority of our own, for TLS on loopback."""

import pytest
import trustme

from langchain_svc._http import connections


@pytest.fixture(scope="session")
def authority():
    return trustme.CA()


@pytest.fixture
def trusted(authority, monkeypatch, tmp_path):
    """The authority is trusted, in the way that users do it: the file that says so."""
    path = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(path)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    connections._tls_context.cache_clear()
    yield path
    connections._tls_context.cache_clear()
