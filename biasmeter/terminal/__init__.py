"""What commands share at the terminal: options, tables, progress, and the texts that they print."""
