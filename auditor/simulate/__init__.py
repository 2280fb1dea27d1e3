"""Simulate an OpenAI-compatible upstream with declared bias, drift, failures and judges.

Every answer is marked as simulated. ``model`` declares; ``propensity`` spreads a declared rate over statements;
``truth`` computes what is true and what a correct instrument would report; ``respondent`` and ``judging`` write the
answers; ``server`` speaks HTTP.
"""
