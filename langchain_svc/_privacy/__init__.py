"""Private runs: what may stand in traces, logs and errors, and what is masked."""
