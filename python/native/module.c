/* The Python side of bloomjoin._native: parses arguments, releases the GIL, and
 * calls the rest. Memory goes by address; Python keeps it alive and has checked
 * its size. _native.pyi describes each function. */
#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "native.h"

typedef unsigned long long u64;

static const uint8_t *at(u64 address) { return (const uint8_t *)(uintptr_t)address; }

/* What cpuid has said when the module was loaded. Constant afterwards. */
static int features;

/* parse_set is a converter for PyArg_ParseTuple: a tuple of kind, address,
 * second address, blocks, hash, seed, rule, and whether to use portable code. */
static int parse_set(PyObject *o, void *out) {
    bj_set *s = out;
    u64 data, second, blocks, seed;
    int portable;
    if (!PyTuple_Check(o)) {
        PyErr_SetString(PyExc_TypeError, "want a tuple that describes a set");
        return 0;
    }
    if (!PyArg_ParseTuple(o, "iKKKiKip", &s->kind, &data, &second, &blocks, &s->hash, &seed, &s->rule, &portable))
        return 0;
    s->data = at(data);
    s->second = second ? at(second) : NULL;
    s->blocks = blocks;
    s->seed = seed;
    s->cpu = portable ? 0 : features;
    return 1;
}

/* parse_rows is a converter: number of rows, address and offset of the validity
 * bitmap, address of the results. */
static int parse_rows(PyObject *o, void *out) {
    bj_rows *r = out;
    u64 validity, result;
    long long rows, offset;
    if (!PyTuple_Check(o)) {
        PyErr_SetString(PyExc_TypeError, "want a tuple that describes rows");
        return 0;
    }
    if (!PyArg_ParseTuple(o, "LKLK", &rows, &validity, &offset, &result))
        return 0;
    r->rows = rows;
    r->validity = at(validity);
    r->validity_offset = offset;
    r->out = (uint8_t *)(uintptr_t)result;
    return 1;
}

static PyObject *done(int ok) {
    if (!ok)
        return PyErr_NoMemory();
    if (ok < 0)
        return PyErr_Format(PyExc_NotImplementedError, "text beyond ASCII under a rule of Unicode");
    Py_RETURN_NONE;
}

static PyObject *xxh3(PyObject *self, PyObject *args) {
    (void)self;
    u64 address, size, seed = 0, hash;
    if (!PyArg_ParseTuple(args, "KK|K", &address, &size, &seed))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    hash = bj_xxh3(at(address), (size_t)size, seed);
    Py_END_ALLOW_THREADS
    return PyLong_FromUnsignedLongLong(hash);
}

static PyObject *xxh64(PyObject *self, PyObject *args) {
    (void)self;
    u64 address, size, hash;
    if (!PyArg_ParseTuple(args, "KK", &address, &size))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    hash = bj_xxh64(at(address), (size_t)size);
    Py_END_ALLOW_THREADS
    return PyLong_FromUnsignedLongLong(hash);
}

static PyObject *probe_ints(PyObject *self, PyObject *args) {
    (void)self;
    bj_set s;
    bj_rows r;
    u64 values;
    int width, is_signed;
    if (!PyArg_ParseTuple(args, "O&O&Kip", parse_set, &s, parse_rows, &r, &values, &width, &is_signed))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    bj_probe_ints(&s, &r, at(values), width, is_signed);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *probe_offsets(PyObject *self, PyObject *args) {
    (void)self;
    bj_set s;
    bj_rows r;
    u64 offsets, data;
    int width, ok;
    if (!PyArg_ParseTuple(args, "O&O&KiK", parse_set, &s, parse_rows, &r, &offsets, &width, &data))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    ok = bj_probe_offsets(&s, &r, at(offsets), width, at(data));
    Py_END_ALLOW_THREADS
    return done(ok);
}

static PyObject *probe_fixed(PyObject *self, PyObject *args) {
    (void)self;
    bj_set s;
    bj_rows r;
    u64 data, width;
    int ok;
    if (!PyArg_ParseTuple(args, "O&O&KK", parse_set, &s, parse_rows, &r, &data, &width))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    ok = bj_probe_fixed(&s, &r, at(data), (size_t)width);
    Py_END_ALLOW_THREADS
    return done(ok);
}

static PyObject *probe_views(PyObject *self, PyObject *args) {
    (void)self;
    bj_set s;
    bj_rows r;
    u64 views, buffers; /* buffers: address of an array of addresses */
    int ok;
    if (!PyArg_ParseTuple(args, "O&O&KK", parse_set, &s, parse_rows, &r, &views, &buffers))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    ok = bj_probe_views(&s, &r, at(views), (const uint8_t *const *)(uintptr_t)buffers);
    Py_END_ALLOW_THREADS
    return done(ok);
}

static PyObject *bloom_fpr(PyObject *self, PyObject *args) {
    (void)self;
    bj_set s;
    double fpr;
    if (!PyArg_ParseTuple(args, "O&", parse_set, &s))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    fpr = bj_bloom_fpr(&s);
    Py_END_ALLOW_THREADS
    return PyFloat_FromDouble(fpr);
}

static PyObject *counters(PyObject *self, PyObject *args) {
    (void)self;
    u64 address, size, bits, saturated;
    if (!PyArg_ParseTuple(args, "KKK", &address, &size, &bits))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    saturated = bj_counters(at(address), (size_t)size, (uint8_t *)(uintptr_t)bits);
    Py_END_ALLOW_THREADS
    return PyLong_FromUnsignedLongLong(saturated);
}

static PyObject *exact_measure(PyObject *self, PyObject *args) {
    (void)self;
    u64 address, size;
    int negative;
    bj_measure m;
    const char *wrong;
    if (!PyArg_ParseTuple(args, "KKp", &address, &size, &negative))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    wrong = bj_measure_part(at(address), (size_t)size, negative, &m);
    Py_END_ALLOW_THREADS
    if (wrong != NULL)
        return PyErr_Format(PyExc_ValueError, "%s", wrong);
    return Py_BuildValue("KKKK", (u64)m.members, (u64)m.first, (u64)m.last, (u64)m.words);
}

static int parse_measure(PyObject *o, void *out) {
    bj_measure *m = out;
    u64 v[4];
    if (!PyTuple_Check(o)) {
        PyErr_SetString(PyExc_TypeError, "want what exact_measure returned");
        return 0;
    }
    if (!PyArg_ParseTuple(o, "KKKK", &v[0], &v[1], &v[2], &v[3]))
        return 0;
    *m = (bj_measure){v[0], v[1], v[2], v[3]};
    return 1;
}

static PyObject *index_bytes(PyObject *self, PyObject *args) {
    (void)self;
    bj_measure m;
    int kind;
    if (!PyArg_ParseTuple(args, "iO&", &kind, parse_measure, &m))
        return NULL;
    return PyLong_FromUnsignedLongLong(bj_index_bytes(kind, &m));
}

static PyObject *index_build(PyObject *self, PyObject *args) {
    (void)self;
    bj_measure m;
    u64 index, address, size;
    int kind, negative;
    const char *wrong;
    if (!PyArg_ParseTuple(args, "KiO&KKp", &index, &kind, parse_measure, &m, &address, &size, &negative))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    wrong = bj_index_build((uint8_t *)(uintptr_t)index, kind, &m, at(address), (size_t)size, negative);
    Py_END_ALLOW_THREADS
    if (wrong != NULL)
        return PyErr_Format(PyExc_ValueError, "%s", wrong);
    Py_RETURN_NONE;
}

static PyObject *cpu(PyObject *self, PyObject *args) {
    (void)self;
    (void)args;
    return PyLong_FromLong(features);
}

static PyMethodDef methods[] = {
    {"xxh3", xxh3, METH_VARARGS, NULL},
    {"xxh64", xxh64, METH_VARARGS, NULL},
    {"probe_ints", probe_ints, METH_VARARGS, NULL},
    {"probe_offsets", probe_offsets, METH_VARARGS, NULL},
    {"probe_fixed", probe_fixed, METH_VARARGS, NULL},
    {"probe_views", probe_views, METH_VARARGS, NULL},
    {"bloom_fpr", bloom_fpr, METH_VARARGS, NULL},
    {"counters", counters, METH_VARARGS, NULL},
    {"exact_measure", exact_measure, METH_VARARGS, NULL},
    {"index_bytes", index_bytes, METH_VARARGS, NULL},
    {"index_build", index_build, METH_VARARGS, NULL},
    {"cpu", cpu, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int start(PyObject *module) {
    (void)module;
    features = bj_cpu();
    return 0;
}

/* ISO C has no conversion of functions to void *; every Python module does it. */
static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)(uintptr_t)start},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "bloomjoin._native",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
