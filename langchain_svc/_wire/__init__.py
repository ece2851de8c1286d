"""What goes over the wire, as pure functions of bytes and values: no I/O, no LangChain."""
