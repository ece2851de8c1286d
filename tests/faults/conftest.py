"""The servers that the cells of the matrix share, and threads for the blocking ones."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from fault_matrix import Places
from fault_peer import Peer


@pytest.fixture(scope="session")
def places():
    with Peer() as closed:
        port = closed.port
    with Peer() as peer, Peer() as elsewhere:
        yield Places(peer, elsewhere, port)


@pytest.fixture(scope="session")
def pool():
    with ThreadPoolExecutor(14) as threads:
        yield threads
