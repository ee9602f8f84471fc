"""Records turned into words and tables. Never measures."""
