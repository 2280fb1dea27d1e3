"""Record the outputs of the main commands of a checkout, and compare two recordings."""
