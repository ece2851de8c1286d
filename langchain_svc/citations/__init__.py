"""Citations: answers whose quotes were looked up in the documents that they cite."""

from .citing import citing_of
