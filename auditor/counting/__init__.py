"""Count rows of files or of the store in joint tables of Selection x Elaboration by statement."""
