"""The chat model, and one turn of a chat: what is asked, and what is read."""
