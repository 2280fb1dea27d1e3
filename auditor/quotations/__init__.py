"""Answers that reports quote: case studies, and the statement with the largest swing between two tasks.

``choice`` has the rules that choose them, among the rows of a file or among the candidates that
``auditor.store.quotations`` finds; ``stored`` reads those of a period. ``auditor.report.quotations`` shows them.
"""
