/* The numbers of JSON lines of one kind as rows, called by query.inputs.line_rows.
 *
 * scan() goes through lines that begin with a given text.  Such a line is an object; a description names the fields that
 * become columns, and everything else is checked and skipped.  The grammar is JSON's, except for what the lines that
 * programs write for each other do not have: blanks, escapes, characters beyond ASCII, exponents, nulls in columns,
 * numbers of more than 15 digits in columns.  A line with any of those is left to Python, whole.  So a row has the same
 * numbers as if a JSON parser had read the line, and this file needs to know no framework.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OBJECTS = 16, MOST_FIELDS = 32, MOST_COLUMNS = 128, MOST_DEPTH = 32, MOST_BYTES = 1 << 20 };

/* The kinds of fields: a number; a text, as its code in a dict; true or false; an object; one text that must be there; a
 * text of which is known whether it is one of some. */
enum { NUMBER, TEXT, BOOL, OBJECT, EXACTLY, AMONG, KINDS };

typedef struct {
    const char *name;
    Py_ssize_t length;
    int kind;
    int column;           /* of an object: which one */
    bool required;
    PyObject *texts;      /* a dict of codes, or a tuple of texts; not owned */
    const char *last;     /* the last text of this field, and its code: most lines repeat it */
    Py_ssize_t last_length;
    double last_code;
} Field;

typedef struct {
    Field fields[MOST_FIELDS];
    int count;
    uint64_t required;
    double missing; /* the columns of this object where a line has it without the field */
} Object;

typedef struct {
    Object objects[MOST_OBJECTS];
    int count, columns;
    double *row;
    const char *at, *end; /* the rest of the line */
    bool failed;          /* with Python's error set */
} Scan;

/* ---- Values that are skipped. */

/* Each moves `at` behind a value and returns false if the line has to be left to Python. */
static bool skip_text(Scan *scan) { /* behind its first quote */
    const char *at = scan->at, *end = scan->end;
    while (at < end) {
        unsigned char each = (unsigned char)*at++;
        if (each == '"') {
            scan->at = at;
            return true;
        }
        if (each < 0x20 || each >= 0x80 || each == '\\') return false;
    }
    return false;
}

static bool is_digit(const Scan *scan) { return scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9'; }

static bool skip_digits(Scan *scan) {
    if (!is_digit(scan)) return false;
    while (is_digit(scan)) scan->at++;
    return true;
}

static bool skip_number(Scan *scan) {
    if (*scan->at == '-') scan->at++;
    const char *first = scan->at;
    if (!skip_digits(scan) || (*first == '0' && scan->at > first + 1) || scan->at > first + 300) return false;
    if (scan->at < scan->end && *scan->at == '.') {
        scan->at++;
        return skip_digits(scan);
    }
    return true;
}

static bool take(Scan *scan, const char *text, Py_ssize_t length) {
    if (scan->end - scan->at < length || memcmp(scan->at, text, (size_t)length) != 0) return false;
    scan->at += length;
    return true;
}

static bool take_one(Scan *scan, char one) { return scan->at < scan->end && *scan->at == one && scan->at++; }

static bool skip_value(Scan *scan, int depth) {
    if (scan->at >= scan->end || depth > MOST_DEPTH) return false;
    char opened = *scan->at;
    if (opened == '"') {
        scan->at++;
        return skip_text(scan);
    }
    if (opened == 't') return take(scan, "true", 4);
    if (opened == 'f') return take(scan, "false", 5);
    if (opened == 'n') return take(scan, "null", 4);
    if (opened != '{' && opened != '[') return skip_number(scan);
    char closed = opened == '{' ? '}' : ']';
    scan->at++;
    if (take_one(scan, closed)) return true;
    do {
        if (opened == '{' && !(take_one(scan, '"') && skip_text(scan) && take_one(scan, ':'))) return false;
        if (!skip_value(scan, depth + 1)) return false;
    } while (take_one(scan, ','));
    return take_one(scan, closed);
}

/* ---- Values that become columns. */

static bool number(Scan *scan, double *found) {
    bool negative = take_one(scan, '-');
    const char *first = scan->at;
    int64_t value = 0;
    while (is_digit(scan) && scan->at < first + 16) value = 10 * value + (*scan->at++ - '0');
    Py_ssize_t digits = scan->at - first;
    if (digits < 1 || digits > 15 || (*first == '0' && (digits > 1 || negative))) return false;
    *found = (double)(negative ? -value : value);
    return true; /* a fraction or an exponent is neither ',' nor '}' */
}

/* The code of a text; the dict makes one for a new text. */
static bool code(Scan *scan, Field *field, const char *text, Py_ssize_t length) {
    PyObject *key = PyBytes_FromStringAndSize(text, length);
    if (key != NULL) {
        PyObject *found = PyDict_GetItemWithError(field->texts, key); /* not owned */
        Py_XINCREF(found);
        if (found == NULL && !PyErr_Occurred()) found = PyObject_GetItem(field->texts, key);
        Py_DECREF(key);
        if (found != NULL) field->last_code = PyFloat_AsDouble(found);
        Py_XDECREF(found);
    }
    scan->failed = PyErr_Occurred() != NULL;
    field->last = text;
    field->last_length = length;
    return !scan->failed;
}

static bool is_among(const Field *field, const char *text, Py_ssize_t length) {
    for (Py_ssize_t each = 0; each < PyTuple_Size(field->texts); each++) {
        PyObject *known = PyTuple_GetItem(field->texts, each); /* bytes, checked by described() */
        if (PyBytes_Size(known) == length && memcmp(PyBytes_AsString(known), text, (size_t)length) == 0) return true;
    }
    return false;
}

static bool text(Scan *scan, Field *field) {
    if (!take_one(scan, '"')) return false;
    const char *first = scan->at;
    if (!skip_text(scan)) return false;
    Py_ssize_t length = scan->at - 1 - first;
    if (field->kind == EXACTLY) return is_among(field, first, length);
    if (field->kind == AMONG) {
        scan->row[field->column] = is_among(field, first, length);
        return true;
    }
    bool is_last = field->last != NULL && length == field->last_length && memcmp(first, field->last, (size_t)length) == 0;
    if (!is_last && !code(scan, field, first, length)) return false;
    scan->row[field->column] = field->last_code;
    return true;
}

static bool object(Scan *scan, int which);

static bool value(Scan *scan, Field *field) {
    switch (field->kind) {
    case NUMBER: return number(scan, &scan->row[field->column]);
    case OBJECT: return object(scan, field->column);
    case BOOL:
        if (scan->at < scan->end && *scan->at == 't') {
            scan->row[field->column] = 1.0;
            return take(scan, "true", 4);
        }
        scan->row[field->column] = 0.0;
        return take(scan, "false", 5);
    default: return text(scan, field);
    }
}

/* The field of an object that has this name: usually the one after the last; the object's `count` if it has none. */
static int find(const Object *described, const char *name, Py_ssize_t length, int expected) {
    for (int tried = 0; tried < described->count; tried++) {
        int place = (expected + tried) % described->count;
        const Field *field = &described->fields[place];
        if (field->length == length && memcmp(field->name, name, (size_t)length) == 0) return place;
    }
    return described->count;
}

/* An object whose fields are described.  A field that comes twice is left to Python. */
static bool object(Scan *scan, int which) {
    Object *described = &scan->objects[which];
    uint64_t seen = 0;
    int expected = 0;
    if (!take_one(scan, '{')) return false;
    for (int each = 0; each < described->count; each++)
        if (described->fields[each].kind != OBJECT && described->fields[each].kind != EXACTLY)
            scan->row[described->fields[each].column] = described->missing;
    if (!take_one(scan, '}')) {
        do {
            if (!take_one(scan, '"')) return false;
            const char *name = scan->at;
            if (!skip_text(scan)) return false;
            int place = find(described, name, scan->at - 1 - name, expected);
            if (!take_one(scan, ':')) return false;
            if (place == described->count) {
                if (!skip_value(scan, 0)) return false;
                continue;
            }
            uint64_t bit = (uint64_t)1 << place;
            if (seen & bit || !value(scan, &described->fields[place])) return false;
            seen |= bit;
            expected = place + 1;
        } while (take_one(scan, ','));
        if (!take_one(scan, '}')) return false;
    }
    return (seen & described->required) == described->required;
}

/* ---- The description. */

/* Read a description: for each object the value of missing columns and its fields, each (name, kind, column or object,
 * required, texts or None).  All of it outlives the scan.  False with Python's error set. */
static bool described(Scan *scan, PyObject *objects) {
    scan->count = (int)PyTuple_Size(objects);
    if (scan->count < 1 || scan->count > MOST_OBJECTS) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "too many objects");
        return false;
    }
    for (int which = 0; which < scan->count; which++) {
        Object *each = &scan->objects[which];
        PyObject *fields;
        if (!PyArg_ParseTuple(PyTuple_GetItem(objects, which), "dO!", &each->missing, &PyTuple_Type, &fields)) return false;
        each->count = PyTuple_Size(fields) > MOST_FIELDS ? MOST_FIELDS + 1 : (int)PyTuple_Size(fields);
        for (int place = 0; place < each->count && place < MOST_FIELDS; place++) {
            Field *field = &each->fields[place];
            int required;
            *field = (Field){0};
            if (!PyArg_ParseTuple(PyTuple_GetItem(fields, place), "y#iipO", &field->name, &field->length, &field->kind,
                                  &field->column, &required, &field->texts)) return false;
            int most = field->kind == OBJECT ? scan->count : scan->columns;
            bool valid = field->kind >= 0 && field->kind < KINDS && field->column >= 0 && field->column < most;
            if (field->kind == TEXT) valid = valid && PyDict_Check(field->texts);
            if (field->kind == EXACTLY || field->kind == AMONG) {
                valid = valid && PyTuple_Check(field->texts);
                for (Py_ssize_t one = 0; valid && one < PyTuple_Size(field->texts); one++)
                    valid = PyBytes_Check(PyTuple_GetItem(field->texts, one));
            }
            if (!valid) {
                PyErr_Format(PyExc_ValueError, "field %d of object %d is not valid", place, which);
                return false;
            }
            if (required) each->required |= (uint64_t)1 << place;
        }
        if (each->count > MOST_FIELDS) {
            PyErr_Format(PyExc_ValueError, "object %d has too many fields", which);
            return false;
        }
    }
    return true;
}

/* ---- Lines. */

/* Items of 8 bytes, numbers of either kind. */
typedef struct {
    char *items;
    size_t count, room;
} Items;

static bool grow(Items *items, size_t more) {
    if (items->count + more > items->room) {
        size_t room = 2 * items->room + more + 256;
        char *grown = realloc(items->items, 8 * room);
        if (grown == NULL) return false;
        items->items = grown;
        items->room = room;
    }
    items->count += more;
    return true;
}

static bool add(Items *items, int64_t one, int64_t two, int64_t three, int64_t four) {
    int64_t added[4] = {one, two, three, four};
    if (!grow(items, 4)) return false;
    memcpy(items->items + 8 * (items->count - 4), added, sizeof added);
    return true;
}

/* Whether a line is as a pattern: its texts with a number between two; stores the last of the numbers. */
static bool is_like(const char *at, const char *end, PyObject *pattern, int64_t *last) {
    Scan scan = {.at = at, .end = end};
    Py_ssize_t texts = PyTuple_Size(pattern) - 1; /* the last one ends the line */
    for (Py_ssize_t each = 0; each < texts; each++) {
        PyObject *part = PyTuple_GetItem(pattern, each);
        double found = 0.0;
        if (each > 0 && (scan.at == scan.end || *scan.at == '-' || !number(&scan, &found))) return false;
        *last = (int64_t)found;
        if (!take(&scan, PyBytes_AsString(part), PyBytes_Size(part))) return false;
    }
    PyObject *part = PyTuple_GetItem(pattern, texts);
    Py_ssize_t length = PyBytes_Size(part);
    return end - scan.at >= length && memcmp(end - length, PyBytes_AsString(part), (size_t)length) == 0;
}

typedef struct {
    Scan scan;
    const char *prefix;
    Py_ssize_t prefix_length;
    PyObject *pattern;
    const double *template;
    Items rows, places, like, others;
    int64_t count; /* of lines */
} Lines;

/* Add a line to one of the results.  False if memory runs out, or with Python's error set. */
static bool add_line(Lines *lines, const char *at, const char *end, int64_t position, int64_t begin) {
    Scan *scan = &lines->scan;
    int64_t stop = begin + (end - at), id = 0;
    if (at == end) return true;
    if (end - at < lines->prefix_length || memcmp(at, lines->prefix, (size_t)lines->prefix_length) != 0) {
        if (is_like(at, end, lines->pattern, &id)) return add(&lines->like, id, position, begin, stop);
        return add(&lines->others, position, -1, begin, stop);
    }
    size_t columns = (size_t)scan->columns;
    int64_t row = (int64_t)(lines->rows.count / columns);
    if (!grow(&lines->rows, columns) || !grow(&lines->places, 1)) return false;
    memcpy(lines->places.items + 8 * (lines->places.count - 1), &position, 8);
    scan->row = (double *)lines->rows.items + (size_t)row * columns;
    memcpy(scan->row, lines->template, 8 * columns);
    scan->at = at;
    scan->end = end;
    if (end - at <= MOST_BYTES && object(scan, 0) && scan->at == end) return true;
    if (scan->failed) return false;
    memcpy(scan->row, lines->template, 8 * columns);
    return add(&lines->others, position, row, begin, stop);
}

static bool add_lines(Lines *lines, const Py_buffer *first, const Py_buffer *piece) {
    const char *text = first->buf;
    if (!add_line(lines, text, text + first->len, lines->count++, -1)) return false;
    if (piece->buf == NULL) return true;
    const char *start = piece->buf, *at = memchr(start, '\n', (size_t)piece->len);
    while (at != NULL) {
        const char *line = at + 1;
        at = memchr(line, '\n', (size_t)(start + piece->len - line));
        if (at != NULL && !add_line(lines, line, at, lines->count++, line - start)) return false;
    }
    return true;
}

static PyObject *packed(const Items *items) {
    return PyByteArray_FromStringAndSize(items->items, (Py_ssize_t)(8 * items->count));
}

static PyObject *py_scan(PyObject *module, PyObject *arguments) {
    (void)module;
    Py_buffer first = {0}, piece = {0}, template = {0};
    PyObject *objects, *found = NULL;
    Lines *lines = calloc(1, sizeof(Lines));
    if (lines == NULL) return PyErr_NoMemory();
    if (PyArg_ParseTuple(arguments, "y*z*y#O!O!y*", &first, &piece, &lines->prefix, &lines->prefix_length, &PyTuple_Type,
                         &lines->pattern, &PyTuple_Type, &objects, &template)) {
        lines->template = template.buf;
        lines->scan.columns = (int)(template.len / 8);
        bool valid = template.len >= 8 && template.len <= 8 * MOST_COLUMNS && PyTuple_Size(lines->pattern) > 1;
        for (Py_ssize_t each = 0; valid && each < PyTuple_Size(lines->pattern); each++)
            valid = PyBytes_Check(PyTuple_GetItem(lines->pattern, each));
        if (!valid) PyErr_SetString(PyExc_ValueError, "a template or a pattern of another size");
        else if (described(&lines->scan, objects)) {
            if (add_lines(lines, &first, &piece))
                found = Py_BuildValue("NNNNL", packed(&lines->rows), packed(&lines->places), packed(&lines->like),
                                      packed(&lines->others), (long long)lines->count);
            else if (!PyErr_Occurred()) PyErr_NoMemory();
        }
    }
    Items *all[] = {&lines->rows, &lines->places, &lines->like, &lines->others};
    for (size_t each = 0; each < 4; each++) free(all[each]->items);
    free(lines);
    if (first.obj != NULL) PyBuffer_Release(&first);
    if (piece.obj != NULL) PyBuffer_Release(&piece);
    if (template.obj != NULL) PyBuffer_Release(&template);
    return found;
}

static PyMethodDef functions[] = {
    {"scan", py_scan, METH_VARARGS,
     "scan(first, piece, prefix, pattern, objects, template): rows of float64; positions of their lines; (number, "
     "position, begin, end) of lines like the pattern; (position, row or -1, begin, end) of all others; the "
     "number of lines.  The first four are bytearrays of 8 bytes an item."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef described_module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "crystalperf.query.inputs._line_rows",
    .m_doc = "Numbers of JSON lines as rows.",
    .m_size = 0,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__line_rows(void) {
    return PyModuleDef_Init(&described_module);
}
