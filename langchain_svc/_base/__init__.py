"""What every room stands on: late imports, threads, safe errors, counts of tokens."""
