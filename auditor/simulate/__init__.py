"""The simulator: an OpenAI-compatible upstream whose bias, drift, failures and judges are declared, never guessed.

Everything here is simulated and says so. ``model`` declares; ``propensity`` spreads a declared rate over statements;
``truth`` computes what is true and what a correct instrument would report; ``respondent`` and ``judging`` write the
answers; ``server`` speaks HTTP; ``generate`` makes rows without any text or HTTP in between.
"""
