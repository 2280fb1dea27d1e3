/* Whether bytes may hold a secret: one pass over the bytes, for the searches of gateway/recording/redaction.
 *
 * "No" is certain, for all rules together: no search of rules.py and search.py suspects these bytes.
 * After a "yes" those searches decide. Everything works without this module, only slower.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum {
    ALNUM = 1,  /* of ASCII */
    RUN = 2,    /* occurs in keys: _RUN_CLASS of rules.py */
    DECIMAL = 4,
    DIGIT = 8,  /* a digit or what stands for one: 0 in _NUMBER_CLASS of rules.py */
    GAP = 16,   /* may part groups of digits: - in _NUMBER_CLASS */
    LOOK = 32,  /* what follows may tell a secret */
};
enum { KEY_LENGTH = 20, NUMBER_LENGTH = 9, CARD_SHORTEST = 13, CARD_LONGEST = 19, WIDEST_GAP = 2 };
/* The classes of the last five bytes, two bits each, where they are 00-00: digits 1, gaps 2. */
enum { IN_ALL = 0x165, FIVE = 0x3ff };

static unsigned char kinds[256];

static void fill_kinds(void)
{
    for (int c = 0; c < 256; c++) {
        bool decimal = c >= '0' && c <= '9';
        bool alnum = decimal || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        int kind = 0;
        if (alnum) kind |= ALNUM;
        if (alnum || (c && strchr("+/-_", c))) kind |= RUN;
        if (decimal) kind |= DECIMAL;
        if (decimal || (c && strchr(")\\\xc2\xe2\x80", c))) kind |= DIGIT;
        if (c && strchr(" .-/\xa0\x89\xaf\x90\x91\x93", c)) kind |= GAP;
        if (c && strchr("@=\\+P_w", c)) kind |= LOOK;
        kinds[c] = (unsigned char)kind;
    }
}

static bool starts(const unsigned char *at, const unsigned char *end, const char *word)
{
    size_t size = strlen(word);
    return (size_t)(end - at) >= size && memcmp(at, word, size) == 0;
}

/* Whether an escape, a sign or a word that contains this byte tells a secret. */
static bool looks_secret(const unsigned char *data, const unsigned char *at, const unsigned char *end)
{
    ptrdiff_t left = end - at;
    switch (*at) {
    case '@':
    case '=':
        return true;
    case '\\': /* an escaped character of ASCII, a wide space or dash, or a slash */
        return left > 1 && (at[1] == '/' || (left > 3 && at[1] == 'u' && (at[2] == '0' || at[2] == '2') && at[3] == '0'));
    case '+':
        return left > 1 && at[1] >= '1' && at[1] <= '9';
    case 'P':
        return starts(at, end, "PRIVATE KEY");
    case '_':
        return starts(at, end, "_secret") || (at - data >= 3 && starts(at - 3, end, "api_key"));
    case 'w':
        return at - data >= 3 && starts(at - 3, end, "assword");
    default:
        return false;
    }
}

/* Whether a key may begin here: _BEGINS of rules.py. */
static bool begins_key(const unsigned char *at, const unsigned char *end)
{
    if (end - at < 3 || !strchr("sgxAhe", *at)) return false;
    const unsigned char *next = at + 1;
    switch (*next) {
    case 'k': return next[1] == '-';
    case 'f': return next[1] == '_';
    case 'y': return next[1] == 'J';
    case 'h': return end - next > 2 && next[2] == '_' && strchr("opsur", next[1]);
    case 'o': return end - next > 3 && next[1] == 'x' && next[3] == '-';
    case 'I': return starts(next, end, "Iza");
    case 'K': return starts(next, end, "KIA");
    case 'S': return starts(next, end, "SIA");
    case 'i': return starts(next, end, "ithub_pat_");
    default: return false;
    }
}

/* Whether a run of characters of keys may hold one; the letter of an escape does not belong to the next word. */
static bool holds_key(const unsigned char *data, const unsigned char *begin, const unsigned char *end)
{
    if (begin - data >= 6 && memcmp(begin - 6, "earer ", 6) == 0) return true;
    for (const unsigned char *at = begin; at < end; at++) {
        if (!begins_key(at, end)) continue;
        if (at == data || !(kinds[at[-1]] & ALNUM) || (at - data >= 2 && at[-2] == '\\')) return true;
    }
    return false;
}

/* Whether a run of at least KEY_LENGTH characters of keys may hold one. A run covers one byte of each KEY_LENGTH. */
static bool holds_key_in_runs(const unsigned char *data, const unsigned char *end)
{
    const unsigned char *begin = data; /* no run that has not been looked at begins before */
    while (end - begin >= KEY_LENGTH) {
        const unsigned char *at = begin + KEY_LENGTH;
        while (at > begin && (kinds[at[-1]] & RUN)) at--;
        if (at > begin) {
            begin = at;
            continue;
        }
        at = begin + KEY_LENGTH;
        while (at < end && (kinds[*at] & RUN)) at++;
        if (holds_key(data, begin, at)) return true;
        begin = at;
    }
    return false;
}

/* Whether a group of digits has the length and the beginning of a card number. */
static bool is_card(const unsigned char *begin, const unsigned char *end)
{
    return end - begin >= CARD_SHORTEST && end - begin <= CARD_LONGEST && *begin >= '2' && *begin <= '6';
}

/* Where the groups of digits that begin here end; NULL if they may be a number. */
static const unsigned char *skip_number(const unsigned char *at, const unsigned char *end)
{
    const unsigned char *decimals = NULL; /* where a group without gap began */
    unsigned last = 0;                    /* the classes of the last bytes, as of IN_ALL */
    int digits = 0, gaps = 0;             /* in all; since the last digit */
    bool grouped = false;                 /* whether the groups contain IN_ALL */
    for (; at < end && gaps <= WIDEST_GAP; at++) {
        unsigned kind = kinds[*at];
        if (!(kind & (DIGIT | GAP))) break;
        if (kind & DECIMAL) {
            if (decimals == NULL) decimals = at;
        } else if (decimals != NULL) {
            if (is_card(decimals, at)) return NULL;
            decimals = NULL;
        }
        last = (last << 2 | (kind & DIGIT ? 1 : 2)) & FIVE;
        gaps = kind & DIGIT ? 0 : gaps + 1;
        if (kind & DIGIT && digits < NUMBER_LENGTH) digits++;
        grouped = grouped || last == IN_ALL;
        if (grouped && digits >= NUMBER_LENGTH) return NULL;
    }
    return decimals != NULL && is_card(decimals, at) ? NULL : at;
}

/* Where the next byte is that tells anything; most blocks of eight hold none. */
static const unsigned char *next_telling(const unsigned char *at, const unsigned char *end)
{
    while (end - at >= 8 && !((kinds[at[0]] | kinds[at[1]] | kinds[at[2]] | kinds[at[3]] | kinds[at[4]] | kinds[at[5]]
                               | kinds[at[6]] | kinds[at[7]]) & (LOOK | DIGIT)))
        at += 8;
    while (at < end && !(kinds[*at] & (LOOK | DIGIT))) at++;
    return at;
}

static bool may_hold(const unsigned char *data, const unsigned char *end)
{
    const unsigned char *number = data; /* digits before this have been looked at */
    for (const unsigned char *at = next_telling(data, end); at < end; at = next_telling(at + 1, end)) {
        unsigned kind = kinds[*at];
        if ((kind & LOOK) && looks_secret(data, at, end)) return true;
        if ((kind & DIGIT) && at >= number && (number = skip_number(at, end)) == NULL) return true;
    }
    return holds_key_in_runs(data, end);
}

static PyObject *py_may_hold(PyObject *module, PyObject *argument)
{
    char *data;
    Py_ssize_t size;
    (void)module;
    if (PyBytes_AsStringAndSize(argument, &data, &size) < 0) return NULL;
    return PyBool_FromLong(may_hold((const unsigned char *)data, (const unsigned char *)data + size));
}

static PyMethodDef methods[] = {
    {"may_hold", py_may_hold, METH_O, "Return whether bytes may hold a secret; False is certain."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_prefilter", NULL, 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__prefilter(void)
{
    fill_kinds();
    return PyModule_Create(&definition);
}
