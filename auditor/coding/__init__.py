"""Code responses: turn one response, or one stored exchange, into one selection and one elaboration.

``responses`` reads rows of ``responses.jsonl``; ``answers`` finds the text in stored bytes; ``profiles`` reads
clients' traffic with an audit profile; ``split`` applies the rules and the ``panel``; ``exchanges`` does all of it
for stored exchanges, with the ``coders`` of the configuration.
"""
