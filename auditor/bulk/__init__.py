"""Code many stored exchanges at once, in this process or on a Ray cluster. Live work stays with the queue."""
