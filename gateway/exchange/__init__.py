"""One exchange, from the head of its request to its record."""
