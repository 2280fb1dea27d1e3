"""Routes of models: the choice of a deployment, its slots and breaker, and what its failures mean."""
