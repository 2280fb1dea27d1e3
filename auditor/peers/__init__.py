"""Compute Relative Bias: how far a deployment departs from its peers on the same questions."""
