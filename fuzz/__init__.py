"""What the readers must hold to, whatever they are given, and the search for what breaks it.

A property is a function of bytes that returns nothing and raises where a reader breaks its word.
Hypothesis calls it in the tests with random bytes; atheris, led by the code that each input
reaches, calls it for as long as `python -m fuzz` is let. What breaks a property is kept in
`crashers/`, and the tests read it ever after.
"""
