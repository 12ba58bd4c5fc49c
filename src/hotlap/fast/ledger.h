/* Numbers that are added to in every step: tallies, and the ledger of exclusive accounts. */

#define ACCOUNTS 12
#define COUNTS 3

/* The indices of values.phase.ACCOUNTS that the hooks need; the Python side checks them. */
enum {
    DATA_WAIT = 0,
    FORWARD = 2,
    BACKWARD = 3,
    OPTIMIZER = 4,
    OTHER = 7,
    COMPILE = 11,
};

/* -- errors -------------------------------------------------------------------------------------- */

/* Take the exception that is set, as an instance with its traceback; NULL when there is none. */
static PyObject *
take_error(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (type == NULL) {
        return NULL;
    }
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != NULL) {
        PyException_SetTraceback(value, traceback);
        Py_DECREF(traceback);
    }
    Py_DECREF(type);
    return value;
#endif
}

static void
give_error(PyObject *error)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(error);
#else
    PyErr_Restore(Py_NewRef(Py_TYPE(error)), error, PyException_GetTraceback(error));
#endif
}

/* -- clocks ----------------------------------------------------------------------------------- */

/* A callable in place of the clock, for tests; NULL otherwise. */
static PyObject *clock_of_tests;

static int64_t
now_ns(void)
{
    if (clock_of_tests != NULL) {
        PyObject *theirs = take_error();
        PyObject *now = PyObject_CallNoArgs(clock_of_tests);
        int64_t value = now == NULL ? -1 : PyLong_AsLongLong(now);
        Py_XDECREF(now);
        if (PyErr_Occurred()) {
            PyErr_WriteUnraisable(clock_of_tests);
        }
        if (theirs != NULL) {
            give_error(theirs);
        }
        return value;
    }
#ifdef __APPLE__
    return (int64_t)clock_gettime_nsec_np(CLOCK_UPTIME_RAW);
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
#endif
}

static int64_t
thread_ns(void)
{
    if (clock_of_tests != NULL) {
        return now_ns();
    }
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* -- Tally: a row of integers ------------------------------------------------------------------- */

typedef struct {
    PyObject_VAR_HEAD
    int64_t at[1];
} Tally;

static PyTypeObject Tally_Type;

static Tally *
tally_make(Py_ssize_t width)
{
    Tally *made = PyObject_NewVar(Tally, &Tally_Type, width);
    if (made != NULL) {
        memset(made->at, 0, sizeof(int64_t) * (size_t)width);
    }
    return made;
}

static PyObject *
tally_new(PyTypeObject *Py_UNUSED(type), PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    Py_ssize_t width;
    if (!PyArg_ParseTuple(args, "n:Tally", &width)) {
        return NULL;
    }
    if (width < 1 || width > 64) {
        PyErr_Format(PyExc_ValueError, "a tally of %zd numbers: 1 to 64 are possible", width);
        return NULL;
    }
    return (PyObject *)tally_make(width);
}

static PyObject *
tally_copy(PyObject *self, PyObject *Py_UNUSED(nothing))
{
    Tally *copy = tally_make(Py_SIZE(self));
    if (copy != NULL) {
        memcpy(copy->at, ((Tally *)self)->at, sizeof(int64_t) * (size_t)Py_SIZE(self));
    }
    return (PyObject *)copy;
}

static Py_ssize_t
tally_length(PyObject *self)
{
    return Py_SIZE(self);
}

static PyObject *
tally_item(PyObject *self, Py_ssize_t index)
{
    if (index < 0 || index >= Py_SIZE(self)) {
        PyErr_SetString(PyExc_IndexError, "no such place in the tally");
        return NULL;
    }
    return PyLong_FromLongLong(((Tally *)self)->at[index]);
}

static int
tally_assign(PyObject *self, Py_ssize_t index, PyObject *value)
{
    if (index < 0 || index >= Py_SIZE(self) || value == NULL) {
        PyErr_SetString(PyExc_IndexError, "no such place in the tally");
        return -1;
    }
    int64_t number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred()) {
        return -1;
    }
    ((Tally *)self)->at[index] = number;
    return 0;
}

/* By number, also from the end, or a slice, which is a list. */
static PyObject *
tally_subscript(PyObject *self, PyObject *key)
{
    if (PyIndex_Check(key)) {
        Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
        if (index == -1 && PyErr_Occurred()) {
            return NULL;
        }
        return tally_item(self, index < 0 ? index + Py_SIZE(self) : index);
    }
    PyObject *list = PySequence_List(self);
    PyObject *part = list == NULL ? NULL : PyObject_GetItem(list, key);
    Py_XDECREF(list);
    return part;
}

static PyObject *
tally_compare(PyObject *self, PyObject *other, int op)
{
    PyObject *mine = PySequence_List(self);
    PyObject *theirs = Py_TYPE(other) == &Tally_Type ? PySequence_List(other) : Py_NewRef(other);
    PyObject *answer = NULL;
    if (mine != NULL && theirs != NULL) {
        answer = PyObject_RichCompare(mine, theirs, op);
    }
    Py_XDECREF(mine);
    Py_XDECREF(theirs);
    return answer;
}

static PyObject *
tally_repr(PyObject *self)
{
    PyObject *list = PySequence_List(self);
    PyObject *text = list == NULL ? NULL : PyObject_Repr(list);
    Py_XDECREF(list);
    return text;
}

static PyMethodDef tally_methods[] = {
    {"copy", tally_copy, METH_NOARGS, "Return a tally with the same numbers."},
    {NULL},
};

static PySequenceMethods tally_sequence = {
    .sq_length = tally_length,
    .sq_item = tally_item,
    .sq_ass_item = tally_assign,
};

static PyMappingMethods tally_mapping = {
    .mp_length = tally_length,
    .mp_subscript = tally_subscript,
};

static PyTypeObject Tally_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "hotlap.fast._hooks.Tally",
    .tp_doc = "Tally(width): so many integers, 0 at first, that are added to in place.",
    .tp_basicsize = offsetof(Tally, at),
    .tp_itemsize = sizeof(int64_t),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = tally_new,
    .tp_methods = tally_methods,
    .tp_as_sequence = &tally_sequence,
    .tp_as_mapping = &tally_mapping,
    .tp_richcompare = tally_compare,
    .tp_hash = PyObject_HashNotImplemented,
    .tp_repr = tally_repr,
};

static int
tally_replace(Tally **place, PyObject *value, Py_ssize_t width)
{
    if (value == NULL || Py_TYPE(value) != &Tally_Type || Py_SIZE(value) != width) {
        PyErr_Format(PyExc_TypeError, "a tally of %zd numbers belongs here", width);
        return -1;
    }
    Tally *before = *place;
    *place = (Tally *)Py_NewRef(value);
    Py_XDECREF(before);
    return 0;
}

/* -- Ledger ------------------------------------------------------------------------------------- */

#define ROOM 32

typedef struct {
    PyObject_HEAD
    /* What every hook reads and writes lies together. */
    unsigned long thread;
    int64_t mark;
    int current;
    int depth;
    int room;
    char reading;
    /* Changes when everything is new, in a forked child. */
    unsigned long generation;
    Tally *accounts;
    int *stack;
    int first[ROOM];
    /* The optimizer whose step a compiled hook has begun, and the token of its span. */
    PyObject *stepping;
    int stepping_token;
    /* The batch that is waited for: of which loader, and what had been waited before. */
    PyObject *loading;
    int64_t waited_before;
} Ledger;

static PyTypeObject Ledger_Type;

static inline int64_t
ledger_settle(Ledger *self)
{
    int64_t now = now_ns();
    self->accounts->at[self->current] += now - self->mark;
    self->mark = now;
    return now;
}

/* Return the token, never 0; -1 without memory for more spans, and nothing has changed then. */
static inline int
ledger_enter(Ledger *self, int account)
{
    if (self->depth == self->room) {
        int more = 2 * self->room;
        int *stack = PyMem_New(int, more);
        if (stack == NULL) {
            return -1;
        }
        memcpy(stack, self->stack, sizeof(int) * (size_t)self->depth);
        if (self->stack != self->first) {
            PyMem_Free(self->stack);
        }
        self->stack = stack;
        self->room = more;
    }
    ledger_settle(self);
    self->stack[self->depth++] = self->current;
    self->current = account;
    return self->depth;
}

static inline void
ledger_leave(Ledger *self, int64_t token)
{
    if (token < 1 || token > self->depth) {
        return;
    }
    ledger_settle(self);
    self->depth = (int)token - 1;
    self->current = self->stack[self->depth];
}

static PyObject *
ledger_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    Ledger *self = (Ledger *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->stack = self->first;
    self->room = ROOM;
    self->loading = Py_NewRef(Py_None);
    self->accounts = tally_make(ACCOUNTS);
    if (self->accounts == NULL) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int
ledger_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    Ledger *self = (Ledger *)object;
    if (PyTuple_GET_SIZE(args) || (kwargs != NULL && PyDict_GET_SIZE(kwargs))) {
        PyErr_SetString(PyExc_TypeError, "Ledger() takes no arguments");
        return -1;
    }
    Tally *accounts = tally_make(ACCOUNTS);
    if (accounts == NULL) {
        return -1;
    }
    Tally *before = self->accounts;
    self->accounts = accounts;
    Py_DECREF(before);
    self->thread = PyThread_get_thread_ident();
    self->current = OTHER;
    self->depth = 0;
    self->reading = 0;
    self->generation++;
    self->stepping = NULL;
    self->stepping_token = 0;
    self->waited_before = 0;
    Py_XSETREF(self->loading, Py_NewRef(Py_None));
    self->mark = now_ns();
    return 0;
}

static int
ledger_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Ledger *)self)->loading);
    return 0;
}

static int
ledger_clear(PyObject *self)
{
    Py_CLEAR(((Ledger *)self)->loading);
    return 0;
}

static void
ledger_dealloc(PyObject *object)
{
    Ledger *self = (Ledger *)object;
    PyObject_GC_UnTrack(object);
    ledger_clear(object);
    Py_XDECREF(self->accounts);
    if (self->stack != self->first) {
        PyMem_Free(self->stack);
    }
    Py_TYPE(object)->tp_free(object);
}

static int
account_of(PyObject *value)
{
    long account = PyLong_AsLong(value);
    if (account == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (account < 0 || account >= ACCOUNTS) {
        PyErr_Format(PyExc_IndexError, "no account has the number %ld", account);
        return -1;
    }
    return (int)account;
}

static PyObject *
ledger_py_mine(PyObject *self, PyObject *Py_UNUSED(nothing))
{
    return PyBool_FromLong(((Ledger *)self)->thread == PyThread_get_thread_ident());
}

static PyObject *
ledger_py_enter(PyObject *self, PyObject *value)
{
    int account = account_of(value);
    if (account < 0) {
        return NULL;
    }
    int token = ledger_enter((Ledger *)self, account);
    return token < 0 ? PyErr_NoMemory() : PyLong_FromLong(token);
}

static PyObject *
ledger_py_leave(PyObject *self, PyObject *value)
{
    long token = PyLong_AsLong(value);
    if (token == -1 && PyErr_Occurred()) {
        return NULL;
    }
    ledger_leave((Ledger *)self, token);
    Py_RETURN_NONE;
}

static PyObject *
ledger_py_rest_on(PyObject *object, PyObject *value)
{
    Ledger *self = (Ledger *)object;
    int account = account_of(value);
    if (account < 0) {
        return NULL;
    }
    ledger_settle(self);
    if (self->depth) {
        self->stack[0] = account;
    } else {
        self->current = account;
    }
    Py_RETURN_NONE;
}

static PyObject *
ledger_py_settle(PyObject *self, PyObject *Py_UNUSED(nothing))
{
    return PyLong_FromLongLong(ledger_settle((Ledger *)self));
}

static PyObject *
ledger_py_skip(PyObject *self, PyObject *Py_UNUSED(nothing))
{
    ((Ledger *)self)->mark = now_ns();
    Py_RETURN_NONE;
}

static PyObject *
ledger_py_move(PyObject *object, PyObject *args)
{
    Ledger *self = (Ledger *)object;
    long long duration;
    PyObject *value;
    if (!PyArg_ParseTuple(args, "LO:move", &duration, &value)) {
        return NULL;
    }
    int target = account_of(value);
    if (target < 0) {
        return NULL;
    }
    ledger_settle(self);
    self->accounts->at[self->current] -= duration;
    self->accounts->at[target] += duration;
    Py_RETURN_NONE;
}

static PyObject *
ledger_py_inside(PyObject *object, PyObject *value)
{
    Ledger *self = (Ledger *)object;
    int account = account_of(value);
    if (account < 0) {
        return NULL;
    }
    int inside = self->current == account;
    for (int place = 0; place < self->depth && !inside; place++) {
        inside = self->stack[place] == account;
    }
    return PyBool_FromLong(inside);
}

static PyObject *
ledger_py_abandon(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    Ledger *self = (Ledger *)object;
    ledger_settle(self);
    self->depth = 0;
    self->current = OTHER;
    Py_RETURN_NONE;
}

static PyMethodDef ledger_methods[] = {
    {"mine", ledger_py_mine, METH_NOARGS, NULL},
    {"enter", ledger_py_enter, METH_O, NULL},
    {"leave", ledger_py_leave, METH_O, NULL},
    {"rest_on", ledger_py_rest_on, METH_O, NULL},
    {"settle", ledger_py_settle, METH_NOARGS, NULL},
    {"skip", ledger_py_skip, METH_NOARGS, NULL},
    {"move", ledger_py_move, METH_VARARGS, NULL},
    {"inside", ledger_py_inside, METH_O, NULL},
    {"abandon", ledger_py_abandon, METH_NOARGS, NULL},
    {NULL},
};

static PyObject *
ledger_get_accounts(PyObject *self, void *Py_UNUSED(nothing))
{
    return Py_NewRef(((Ledger *)self)->accounts);
}

static int
ledger_set_accounts(PyObject *self, PyObject *value, void *Py_UNUSED(nothing))
{
    return tally_replace(&((Ledger *)self)->accounts, value, ACCOUNTS);
}

static PyObject *
ledger_get_current(PyObject *self, void *Py_UNUSED(nothing))
{
    return PyLong_FromLong(((Ledger *)self)->current);
}

static PyObject *
ledger_get_stack(PyObject *object, void *Py_UNUSED(nothing))
{
    Ledger *self = (Ledger *)object;
    PyObject *list = PyList_New(self->depth);
    for (int place = 0; list != NULL && place < self->depth; place++) {
        PyObject *account = PyLong_FromLong(self->stack[place]);
        if (account == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, place, account);
        }
    }
    return list;
}

static PyObject *
ledger_get_thread(PyObject *self, void *Py_UNUSED(nothing))
{
    return PyLong_FromUnsignedLong(((Ledger *)self)->thread);
}

static int
ledger_set_thread(PyObject *self, PyObject *value, void *Py_UNUSED(nothing))
{
    unsigned long thread = value == NULL ? 0 : PyLong_AsUnsignedLongMask(value);
    if (PyErr_Occurred()) {
        return -1;
    }
    ((Ledger *)self)->thread = thread;
    return 0;
}

static PyGetSetDef ledger_getset[] = {
    {"accounts", ledger_get_accounts, ledger_set_accounts, "The tally that is booked in.", NULL},
    {"current", ledger_get_current, NULL, "The account that is open.", NULL},
    {"stack", ledger_get_stack, NULL, "The accounts that wait, as a new list.", NULL},
    {"thread", ledger_get_thread, ledger_set_thread, "Whose events count.", NULL},
    {NULL},
};

static PyMemberDef ledger_members[] = {
    {"mark", T_LONGLONG, offsetof(Ledger, mark), 0, NULL},
    {"depth", T_INT, offsetof(Ledger, depth), READONLY, NULL},
    {"reading", T_BOOL, offsetof(Ledger, reading), 0, NULL},
    {"loading", T_OBJECT, offsetof(Ledger, loading), 0, NULL},
    {"waited_before", T_LONGLONG, offsetof(Ledger, waited_before), 0, NULL},
    {NULL},
};

static PyTypeObject Ledger_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "hotlap.fast._hooks.Ledger",
    .tp_doc = "The accounts of the training thread: see hotlap.fast.reference.Ledger.",
    .tp_basicsize = sizeof(Ledger),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = ledger_new,
    .tp_init = ledger_init,
    .tp_dealloc = ledger_dealloc,
    .tp_traverse = ledger_traverse,
    .tp_clear = ledger_clear,
    .tp_methods = ledger_methods,
    .tp_getset = ledger_getset,
    .tp_members = ledger_members,
};
