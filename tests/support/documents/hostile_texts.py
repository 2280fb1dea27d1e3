"""Pieces of text that, repeated, a careless search would go over again and again."""

HOSTILE = [
    "a", "@", "a@", "a.", "@a.", "a@a.", "a@a.b-", "7", "0", "4-", "01 23 ", "4111 ", "+1", "(2", "020 7946 ", "(030) ",
    "sk-", "sk-a1b", "-eyJ", "eyJabc.", "-AKIA", "-ghp_", "-hf_", "-xoxb-", "=", "password=", "pwd=1", 'pwd= "',
    "bearer ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----.", "-----BEGIN ", ";base64,A", "\\",
    "\\u0040", "\\\\\\\\u0040", '"', '"logprobs":{a@b.co', '{"choices":[', "data: {}\n\n", "data: \n", "data:\r",
]  # fmt: skip
