"""Ask stored exchanges again in other formats, and compare the answers in pairs."""
