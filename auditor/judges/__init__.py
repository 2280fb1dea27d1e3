"""Define judges: each reads one text and returns one verdict on its stance; ``auditor.coding.panel`` combines several.

``judge`` defines the interface, ``rubric`` the question to all judges. Each kind of judge is one module (``lexicon``,
``llm``) and registers itself with ``loading``, which makes judges from their names.
"""
