/* What the Python watchers know and the hooks look at: bases of their classes, and kept ticks. */

/* -- Ticks: kept in place until Python digests them ---------------------------------------------- */

#define TOGETHER 64

typedef struct {
    int64_t now, rank, optimizer, cpu, epoch_first;
    int64_t accounts[ACCOUNTS];
    int64_t counts[COUNTS];
} Tick;

typedef struct {
    PyObject_HEAD
    int64_t due_ns;
    Py_ssize_t kept;
    Py_ssize_t room;
    Tick *at;
} Ticks;

static PyTypeObject Ticks_Type;

static PyObject *
ticks_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    Ticks *self = (Ticks *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->at = PyMem_New(Tick, TOGETHER);
    self->room = TOGETHER;
    if (self->at == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void
ticks_dealloc(PyObject *self)
{
    PyMem_Free(((Ticks *)self)->at);
    Py_TYPE(self)->tp_free(self);
}

static int
numbers_from(PyObject *sequence, int64_t *numbers, Py_ssize_t count)
{
    PyObject *list = PySequence_List(sequence);
    if (list == NULL) {
        return -1;
    }
    if (PyList_GET_SIZE(list) != count) {
        PyErr_Format(PyExc_ValueError, "%zd numbers, not %zd", PyList_GET_SIZE(list), count);
        Py_DECREF(list);
        return -1;
    }
    for (Py_ssize_t place = 0; place < count; place++) {
        numbers[place] = PyLong_AsLongLong(PyList_GET_ITEM(list, place));
    }
    Py_DECREF(list);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *
ticks_append(PyObject *object, PyObject *raw)
{
    Ticks *self = (Ticks *)object;
    Tick tick;
    long long now, rank, optimizer, cpu;
    int epoch_first;
    PyObject *accounts, *counts;
    if (!PyArg_ParseTuple(raw, "LLLOOLp:append", &now, &rank, &optimizer, &accounts, &counts,
                          &cpu, &epoch_first)
        || numbers_from(accounts, tick.accounts, ACCOUNTS)
        || numbers_from(counts, tick.counts, COUNTS)) {
        return NULL;
    }
    tick.now = now;
    tick.rank = rank;
    tick.optimizer = optimizer;
    tick.cpu = cpu;
    tick.epoch_first = epoch_first;
    if (self->kept == self->room) {
        Tick *more = self->at;
        PyMem_Resize(more, Tick, 2 * self->room);
        if (more == NULL) {
            return PyErr_NoMemory();
        }
        self->at = more;
        self->room *= 2;
    }
    self->at[self->kept++] = tick;
    Py_RETURN_NONE;
}

static PyObject *
row_from(const int64_t *numbers, Py_ssize_t count, int mutable)
{
    PyObject *row = mutable ? PyList_New(count) : PyTuple_New(count);
    for (Py_ssize_t place = 0; row != NULL && place < count; place++) {
        PyObject *number = PyLong_FromLongLong(numbers[place]);
        if (number == NULL) {
            Py_CLEAR(row);
        } else if (mutable) {
            PyList_SET_ITEM(row, place, number);
        } else {
            PyTuple_SET_ITEM(row, place, number);
        }
    }
    return row;
}

static PyObject *
ticks_drain(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    Ticks *self = (Ticks *)object;
    PyObject *list = PyList_New(self->kept);
    for (Py_ssize_t place = 0; list != NULL && place < self->kept; place++) {
        Tick *tick = &self->at[place];
        PyObject *accounts = row_from(tick->accounts, ACCOUNTS, 0);
        PyObject *counts = row_from(tick->counts, COUNTS, 1);
        PyObject *raw = NULL;
        if (accounts != NULL && counts != NULL) {
            raw = Py_BuildValue("LLLOOLO", (long long)tick->now, (long long)tick->rank,
                                (long long)tick->optimizer, accounts, counts,
                                (long long)tick->cpu, tick->epoch_first ? Py_True : Py_False);
        }
        Py_XDECREF(accounts);
        Py_XDECREF(counts);
        if (raw == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, place, raw);
        }
    }
    if (list != NULL) {
        self->kept = 0;
    }
    return list;
}

static Py_ssize_t
ticks_length(PyObject *self)
{
    return ((Ticks *)self)->kept;
}

static PyMethodDef ticks_methods[] = {
    {"append", ticks_append, METH_O, "Keep one tick, a tuple as the journal takes it."},
    {"drain", ticks_drain, METH_NOARGS, "Return what is kept as a list of tuples; forget it."},
    {NULL},
};

static PyMemberDef ticks_members[] = {
    {"due_ns", T_LONGLONG, offsetof(Ticks, due_ns), 0, NULL},
    {NULL},
};

static PySequenceMethods ticks_sequence = {.sq_length = ticks_length};

static PyTypeObject Ticks_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "hotlap.fast._hooks.Ticks",
    .tp_doc = "Ticks that wait to be digested: see hotlap.fast.reference.Ticks.",
    .tp_basicsize = sizeof(Ticks),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = ticks_new,
    .tp_dealloc = ticks_dealloc,
    .tp_methods = ticks_methods,
    .tp_members = ticks_members,
    .tp_as_sequence = &ticks_sequence,
};

/* -- Standing: base of the timeline --------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    int64_t rank, ticks, due;
    Tally *counts, *totals, *base;
    PyObject *stretch, *fetched, *pending, *roots, *begun, *kept;
    char at_edge, epoch_first, stepped_inside;
} Standing;

static PyTypeObject Standing_Type;

static int
standing_init(PyObject *object, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    Standing *self = (Standing *)object;
    Tally *counts = tally_make(COUNTS);
    Tally *totals = tally_make(COUNTS);
    Tally *base = tally_make(ACCOUNTS);
    PyObject *fetched = PyList_New(0);
    PyObject *pending = PyList_New(0);
    PyObject *roots = PyDict_New();
    if (!counts || !totals || !base || !fetched || !pending || !roots) {
        Py_XDECREF(counts);
        Py_XDECREF(totals);
        Py_XDECREF(base);
        Py_XDECREF(fetched);
        Py_XDECREF(pending);
        Py_XDECREF(roots);
        return -1;
    }
    Py_XSETREF(self->counts, counts);
    Py_XSETREF(self->totals, totals);
    Py_XSETREF(self->base, base);
    Py_XSETREF(self->fetched, fetched);
    Py_XSETREF(self->pending, pending);
    Py_XSETREF(self->roots, roots);
    Py_XSETREF(self->stretch, Py_NewRef(Py_None));
    Py_XSETREF(self->begun, Py_NewRef(Py_None));
    Py_XSETREF(self->kept, Py_NewRef(Py_None));
    self->rank = self->ticks = 0;
    self->due = INT64_MAX;
    self->at_edge = self->epoch_first = self->stepped_inside = 0;
    return 0;
}

static PyObject *
standing_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    PyObject *self = type->tp_alloc(type, 0);
    if (self != NULL && standing_init(self, NULL, NULL)) {
        Py_CLEAR(self);
    }
    return self;
}

static int
standing_traverse(PyObject *object, visitproc visit, void *arg)
{
    Standing *self = (Standing *)object;
    Py_VISIT(self->stretch);
    Py_VISIT(self->fetched);
    Py_VISIT(self->pending);
    Py_VISIT(self->roots);
    Py_VISIT(self->begun);
    Py_VISIT(self->kept);
    return 0;
}

static int
standing_clear(PyObject *object)
{
    Standing *self = (Standing *)object;
    Py_CLEAR(self->stretch);
    Py_CLEAR(self->fetched);
    Py_CLEAR(self->pending);
    Py_CLEAR(self->roots);
    Py_CLEAR(self->begun);
    Py_CLEAR(self->kept);
    return 0;
}

static void
standing_dealloc(PyObject *object)
{
    Standing *self = (Standing *)object;
    PyObject_GC_UnTrack(object);
    standing_clear(object);
    Py_XDECREF(self->counts);
    Py_XDECREF(self->totals);
    Py_XDECREF(self->base);
    Py_TYPE(object)->tp_free(object);
}

static PyObject *
standing_get_tally(PyObject *self, void *offset)
{
    return Py_NewRef(*(PyObject **)((char *)self + (size_t)offset));
}

static int
standing_set_counts(PyObject *self, PyObject *value, void *offset)
{
    return tally_replace((Tally **)((char *)self + (size_t)offset), value, COUNTS);
}

static int
standing_set_accounts(PyObject *self, PyObject *value, void *offset)
{
    return tally_replace((Tally **)((char *)self + (size_t)offset), value, ACCOUNTS);
}

static PyGetSetDef standing_getset[] = {
    {"counts", standing_get_tally, standing_set_counts, NULL, (void *)offsetof(Standing, counts)},
    {"totals", standing_get_tally, standing_set_counts, NULL, (void *)offsetof(Standing, totals)},
    {"base", standing_get_tally, standing_set_accounts, NULL, (void *)offsetof(Standing, base)},
    {NULL},
};

static PyMemberDef standing_members[] = {
    {"rank", T_LONGLONG, offsetof(Standing, rank), 0, NULL},
    {"ticks", T_LONGLONG, offsetof(Standing, ticks), 0, NULL},
    {"due", T_LONGLONG, offsetof(Standing, due), 0, NULL},
    {"stretch", T_OBJECT, offsetof(Standing, stretch), 0, NULL},
    {"fetched", T_OBJECT, offsetof(Standing, fetched), 0, NULL},
    {"pending", T_OBJECT, offsetof(Standing, pending), 0, NULL},
    {"roots", T_OBJECT, offsetof(Standing, roots), 0, NULL},
    {"begun", T_OBJECT, offsetof(Standing, begun), 0, NULL},
    {"kept", T_OBJECT, offsetof(Standing, kept), 0, NULL},
    {"at_edge", T_BOOL, offsetof(Standing, at_edge), 0, NULL},
    {"epoch_first", T_BOOL, offsetof(Standing, epoch_first), 0, NULL},
    {"stepped_inside", T_BOOL, offsetof(Standing, stepped_inside), 0, NULL},
    {NULL},
};

static PyTypeObject Standing_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "hotlap.fast._hooks.Standing",
    .tp_doc = "Where a training stands: see hotlap.fast.reference.Standing.",
    .tp_basicsize = sizeof(Standing),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = standing_new,
    .tp_init = standing_init,
    .tp_dealloc = standing_dealloc,
    .tp_traverse = standing_traverse,
    .tp_clear = standing_clear,
    .tp_getset = standing_getset,
    .tp_members = standing_members,
};

/* In the plain case nothing is undecided: no stretch is open, no edge of an epoch. */
static inline int
standing_plain(Standing *self)
{
    return self->stretch == Py_None && !self->at_edge;
}

/* -- Feed: base of what is known of a loader ------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    char trains, evaluates, fresh;
} Feed;

static PyMemberDef feed_members[] = {
    {"trains", T_BOOL, offsetof(Feed, trains), 0, NULL},
    {"evaluates", T_BOOL, offsetof(Feed, evaluates), 0, NULL},
    {"fresh", T_BOOL, offsetof(Feed, fresh), 0, NULL},
    {NULL},
};

static PyTypeObject Feed_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "hotlap.fast._hooks.Feed",
    .tp_doc = "The part of a loader that hooks look at: see hotlap.fast.reference.Feed.",
    .tp_basicsize = sizeof(Feed),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = PyType_GenericNew,
    .tp_members = feed_members,
};

/* -- Sample: base of what measures batches --------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    PyObject *open;
    int64_t to_skip, skipped;
    unsigned long long fetcher;
    char skipping;
} Sample;

static PyTypeObject Sample_Type;

static int
sample_init(PyObject *object, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    Sample *self = (Sample *)object;
    Py_XSETREF(self->open, Py_NewRef(Py_None));
    self->to_skip = self->skipped = 0;
    self->fetcher = 0;
    self->skipping = 0;
    return 0;
}

static PyObject *
sample_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    PyObject *self = type->tp_alloc(type, 0);
    if (self != NULL) {
        sample_init(self, NULL, NULL);
    }
    return self;
}

static int
sample_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Sample *)self)->open);
    return 0;
}

static int
sample_clear(PyObject *self)
{
    Py_CLEAR(((Sample *)self)->open);
    return 0;
}

static void
sample_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    sample_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef sample_members[] = {
    {"open", T_OBJECT, offsetof(Sample, open), 0, NULL},
    {"to_skip", T_LONGLONG, offsetof(Sample, to_skip), 0, NULL},
    {"skipped", T_LONGLONG, offsetof(Sample, skipped), 0, NULL},
    {"fetcher", T_ULONGLONG, offsetof(Sample, fetcher), 0, NULL},
    {"skipping", T_BOOL, offsetof(Sample, skipping), 0, NULL},
    {NULL},
};

static PyTypeObject Sample_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "hotlap.fast._hooks.Sample",
    .tp_doc = "Which batches are measured: see hotlap.fast.reference.Sample.",
    .tp_basicsize = sizeof(Sample),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = sample_new,
    .tp_init = sample_init,
    .tp_dealloc = sample_dealloc,
    .tp_traverse = sample_traverse,
    .tp_clear = sample_clear,
    .tp_members = sample_members,
};
