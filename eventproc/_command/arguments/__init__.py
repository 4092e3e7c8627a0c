"""Options and arguments: their help texts, and the parsing of their values."""
