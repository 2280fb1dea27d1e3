"""One definition writes, reads and validates a document."""

import json

import pytest
from support.documents.sample_document import SAMPLE, MissingRow, RateEntry, RowEntry, SampleDocument

from auditor.documents.base import Missing
from auditor.documents.codec import canonical_bytes, decode, json_object
from auditor.errors import InputError


def test_the_same_bytes_come_back():
    written = canonical_bytes(SAMPLE)
    assert written.startswith(b'{\n "from": null,\n "rows": [')
    assert b"0.3333333333\n" in written
    read = decode(written, SampleDocument, "sample.json")
    assert canonical_bytes(read) == written
    assert isinstance(read.rows[0], RowEntry)
    assert isinstance(read.rows[1], MissingRow)
    assert read.rows[0].rates["none"] == Missing(missing="12 rows")


def test_the_object_of_a_document_is_what_is_read_of_its_bytes():
    assert json_object(SAMPLE) == json.loads(canonical_bytes(SAMPLE))


def test_an_absent_key_is_not_written():
    assert canonical_bytes(RateEntry(value=0.0)) == b'{\n "value": 0.0\n}\n'


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ('"value": 0.25', '"value": "0.25"', "/rows/0/rates/a~1b~0c/value: expected `float`, got `str`"),
        ('"value": 0.25', '"value": 1.5', "/rows/0/rates/a~1b~0c/value: expected `float` <= 1.0"),
        ('"n": 3', '"n": 3, "m": 4', "/rows/0/m: unknown key"),
        ('"n": 3', '"n": -1', "/rows/0/n: expected `int` >= 0"),
        ('"n": 3,', "", "/rows/0: lacks the key 'n'"),
        ('"name": "b"', '"name": null', "/rows/1/name: expected `str`, got `null`"),
        ('"sample/1"', '"sample/2"', "/schema: invalid enum value 'sample/2'"),
        ('"from": null', '"from": nil', "is not JSON: "),
    ],
)
def test_an_error_names_its_place_in_one_line(old, new, error):
    text = canonical_bytes(SAMPLE).decode()
    with pytest.raises(InputError) as found:
        decode(text.replace(old, new).encode(), SampleDocument, "sample.json")
    assert str(found.value).startswith(f"sample.json: {error}")
    assert "\n" not in str(found.value)


def test_an_array_is_not_an_object():
    for spoilt, error in (
        (b"[]", "/: expected an object, got an array"),
        (b"7", "/: expected an object, got a number"),
    ):
        with pytest.raises(InputError, match=error):
            decode(spoilt, SampleDocument, "sample.json")
    with pytest.raises(InputError, match=r"/rows: expected an array, got text"):
        decode(b'{"schema": "sample/1", "from": "", "rows": "x"}', SampleDocument, "sample.json")
    with pytest.raises(InputError, match=r"/rows/0: null does not belong here"):
        decode(b'{"schema": "sample/1", "from": "", "rows": [null]}', SampleDocument, "sample.json")
