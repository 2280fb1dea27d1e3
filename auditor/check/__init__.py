"""Check a configuration: risks that can be seen in it (`advice`), and whether what it names answers (`reach`)."""
