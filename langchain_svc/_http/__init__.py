"""Connections under httpx's transports: pools, sockets, TLS, proxies, HTTP/1.1.

What imports httpx (`connections.py`, `library.py`) is slow to load, and many processes never
connect.
"""

from .deadline import FOREVER, TIMEOUTS, Timeouts
