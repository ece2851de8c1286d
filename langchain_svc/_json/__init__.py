"""JSON out of real model text, and onto a schema: pure, without LangChain and without I/O."""
