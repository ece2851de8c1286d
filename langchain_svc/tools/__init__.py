"""The tools of the general interface, their toolkit, and what every tool has in common."""
