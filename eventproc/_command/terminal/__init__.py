"""Exit codes, log lines, end of input."""
