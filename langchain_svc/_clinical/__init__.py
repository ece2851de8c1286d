"""Medical answers: what a model may read of them, and what a program gets."""
