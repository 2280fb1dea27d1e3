"""From a parent and a format to what is sent. Pure: the same give the same.

``calls`` decides whether the parent's statement is asked or its own request; ``framing`` has the words around a
client's question, ``request`` rewrites any chat request, ``own_request`` says what a stored one may be used for.
"""
