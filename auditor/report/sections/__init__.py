"""The sections of the report's page, a module each: which numbers of the document stand where.

The words around them are in ``page/sections``; a section that has nothing to say is left out.
"""
