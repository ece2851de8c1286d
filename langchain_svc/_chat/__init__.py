"""One turn of a chat: what is asked, in which words, and what becomes of the answer."""
