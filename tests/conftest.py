"""What every room of tests may ask for: fixtures live in plugin modules beside this file."""

pytest_plugins = ["llamacpp", "postgres", "stores"]
