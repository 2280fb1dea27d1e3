/* The functions of gateway/primitives.py, for each of which that module has the same in Python.
 *
 * Every request calls them. Everything works without this module, only slower.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MOST_DIGITS = 7, CHECKED = 12, SALT = 8, FRAME = SALT + 4 + 4 + 8 };

/* CRC-32 (IEEE 802.3), eight bytes at once. */
static uint32_t remainders[8][256];

static void fill_remainders(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t rest = byte;
        for (int bit = 0; bit < 8; bit++) rest = rest & 1 ? rest >> 1 ^ 0xEDB88320u : rest >> 1;
        remainders[0][byte] = rest;
    }
    for (int slice = 1; slice < 8; slice++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = remainders[slice - 1][byte];
            remainders[slice][byte] = before >> 8 ^ remainders[0][before & 0xff];
        }
}

static uint32_t crc32(uint32_t crc, const unsigned char *data, size_t size)
{
    crc = ~crc;
    for (; size >= 8; size -= 8, data += 8) {
        crc ^= (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
        crc = remainders[7][crc & 0xff] ^ remainders[6][crc >> 8 & 0xff] ^ remainders[5][crc >> 16 & 0xff]
            ^ remainders[4][crc >> 24] ^ remainders[3][data[4]] ^ remainders[2][data[5]] ^ remainders[1][data[6]]
            ^ remainders[0][data[7]];
    }
    for (; size; size--) crc = crc >> 8 ^ remainders[0][(crc ^ *data++) & 0xff];
    return ~crc;
}

/* Write an integer with its lowest byte first. */
static void put(unsigned char *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(value >> 8 * i);
}

static PyObject *py_frame_head(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    char *salt, *payload;
    Py_ssize_t salt_size, size;
    (void)module;
    if (count != 3) return PyErr_Format(PyExc_TypeError, "frame_head takes 3 arguments, not %zd", count);
    if (PyBytes_AsStringAndSize(arguments[0], &salt, &salt_size) < 0) return NULL;
    if (PyBytes_AsStringAndSize(arguments[1], &payload, &size) < 0) return NULL;
    unsigned long long unix_ms = PyLong_AsUnsignedLongLong(arguments[2]);
    if (unix_ms == (unsigned long long)-1 && PyErr_Occurred()) return NULL;
    if (salt_size != SALT) return PyErr_Format(PyExc_ValueError, "a salt has %d bytes, not %zd", SALT, salt_size);
    if (size > UINT32_MAX) return PyErr_Format(PyExc_ValueError, "a payload of %zd bytes is too large", size);
    PyObject *made = PyBytes_FromStringAndSize(NULL, FRAME);
    if (made == NULL) return NULL;
    unsigned char *to = (unsigned char *)PyBytes_AS_STRING(made), checked[CHECKED];
    put(checked, (uint64_t)size, 4);
    put(checked + 4, unix_ms, 8);
    memcpy(to, salt, SALT);
    put(to + SALT, (uint64_t)size, 4);
    put(to + SALT + 4, crc32(crc32(0, checked, CHECKED), (unsigned char *)payload, (size_t)size), 4);
    put(to + SALT + 8, unix_ms, 8);
    return made;
}

/* Where a text first begins in bytes; NULL if it does not. */
static const char *find(const char *at, const char *end, const char *text)
{
    size_t size = strlen(text);
    for (; (size_t)(end - at) >= size; at++) {
        at = memchr(at, text[0], (size_t)(end - at) - size + 1);
        if (at == NULL) return NULL;
        if (memcmp(at, text, size) == 0) return at;
    }
    return NULL;
}

/* Whether the bytes are a text in lower case, but for the cases of letters. */
static bool is_alike(const char *at, const char *text)
{
    for (; *text; at++, text++)
        if ((*at >= 'A' && *at <= 'Z' ? *at | 0x20 : *at) != *text) return false;
    return true;
}

static PyObject *py_split_head(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    static const char name[] = "\r\ncontent-length: ", told[] = "ength: ";
    char *data;
    Py_ssize_t size;
    (void)module;
    if (count != 2) return PyErr_Format(PyExc_TypeError, "split_head takes 2 arguments, not %zd", count);
    if (PyBytes_AsStringAndSize(arguments[0], &data, &size) < 0) return NULL;
    Py_ssize_t most = PyLong_AsSsize_t(arguments[1]);
    if (most == -1 && PyErr_Occurred()) return NULL;
    const char *end = most <= 0 ? NULL : find(data, data + (size < most ? size : most), "\r\n\r\n");
    const char *digits = end == NULL ? NULL : find(data, end, told);
    if (digits == NULL) Py_RETURN_NONE;
    digits += sizeof(told) - 1;
    if (digits - data < (ptrdiff_t)sizeof(name) - 1 || !is_alike(digits - (sizeof(name) - 1), name)) Py_RETURN_NONE;
    long length = 0;
    const char *rest = digits;
    for (; rest < end && *rest >= '0' && *rest <= '9' && rest - digits <= MOST_DIGITS; rest++)
        length = length * 10 + (*rest - '0');
    if (rest == digits || rest - digits > MOST_DIGITS || *rest != '\r') Py_RETURN_NONE;
    PyObject *head = PyBytes_FromStringAndSize(NULL, (digits - data) + (end - rest));
    if (head == NULL) return NULL;
    memcpy(PyBytes_AS_STRING(head), data, (size_t)(digits - data));
    memcpy(PyBytes_AS_STRING(head) + (digits - data), rest, (size_t)(end - rest));
    return Py_BuildValue("(Nln)", head, length, (Py_ssize_t)(end - data) + 4);
}

/* Where the letter, its capital or their escape ends that begins here; NULL if none does. The bytes end with a zero. */
static const char *skip_letter(const char *at, char letter)
{
    if ((*at | 0x20) == letter) return at + 1;
    if (at[0] != '\\' || at[1] != 'u' || at[2] != '0' || at[3] != '0' || (at[4] != '4' && at[4] != '6')) return NULL;
    char digit = "0123456789abcdef"[letter & 15];
    return (at[5] >= 'A' && at[5] <= 'F' ? at[5] | 0x20 : at[5]) == digit ? at + 6 : NULL;
}

static PyObject *py_repeats_model_key(PyObject *module, PyObject *argument)
{
    char *data;
    Py_ssize_t size;
    (void)module;
    if (PyBytes_AsStringAndSize(argument, &data, &size) < 0) return NULL;
    const char *at = data, *end = data + size;
    int found = 0;
    while (found < 2 && (at = memchr(at, '"', (size_t)(end - at))) != NULL) {
        const char *next = ++at;
        for (const char *letter = "model"; *letter && next; letter++) next = skip_letter(next, *letter);
        if (next == NULL || *next != '"') continue;
        for (next++; *next == ' ' || (*next >= '\t' && *next <= '\r'); next++);
        if (*next == ':') found++;
    }
    return PyBool_FromLong(found > 1);
}

static PyMethodDef methods[] = {
    {"frame_head", (PyCFunction)(void (*)(void))py_frame_head, METH_FASTCALL, "As gateway.primitives.frame_head."},
    {"repeats_model_key", py_repeats_model_key, METH_O, "As gateway.primitives.repeats_model_key."},
    {"split_head", (PyCFunction)(void (*)(void))py_split_head, METH_FASTCALL, "As gateway.primitives.split_head."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_primitives", NULL, 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__primitives(void)
{
    fill_remainders();
    return PyModule_Create(&definition);
}
