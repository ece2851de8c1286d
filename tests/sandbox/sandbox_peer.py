"""What the tests of the sandbox say to it, and how they read a raw socket."""

import socket
import struct

BEARER = {"Authorization": "Bearer sandbox-key"}
MEDICAL = {"X-API-Key": "sandbox-medical-key"}
SAY = [{"role": "user", "content": "Say hello to the whole world, please."}]


def read_all(client):
    """Return what comes until the other side closes, and whether it was a reset."""
    received = b""
    while True:
        try:
            data = client.recv(65536)
        except ConnectionResetError:
            return received, True
        if not data:
            return received, False
        received += data


def slam(client):
    """Close a socket with a reset, as a killed process would."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
