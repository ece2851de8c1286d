"""Reaching the service: settings, retries, connections. The network is touched only here."""
