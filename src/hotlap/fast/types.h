/* The types of what stands in torch's places: Hook (a callable), Reader (a descriptor), Depth. */

typedef struct {
    const char *name;
    vectorcallfunc call;
} Kind;

static const Kind kinds[] = {
    {"module", call_module},
    {"backward", call_backward},
    {"zero_grad", call_zero_grad},
    {"step_begins", call_step_begins},
    {"step_ended", call_step_ended},
    {"next", call_next},
    {"fetch", call_fetch},
    {"collate", call_collate},
    {"read", call_read},
};

/* -- Hook ------------------------------------------------------------------------------------------ */

/* What each kind needs is checked here once, so that no call has to. */
static int
hook_complain(Hook *self)
{
    vectorcallfunc call = self->call;
    int steps = call == call_step_begins || call == call_step_ended;
    int fetches = call == call_fetch || call == call_collate;
    if ((steps && !(self->one && PyDict_CheckExact(self->one) && self->two
                    && PyDict_CheckExact(self->two)))
        || (call == call_step_ended && !self->three)
        || (fetches && !(self->one && PyObject_TypeCheck(self->one, &Sample_Type)))
        || (call == call_next && !(self->one && self->two)) || (call == call_module && !self->one)
        || (call == call_read && !self->two)) {
        PyErr_SetString(PyExc_TypeError, "this kind of hook needs other objects");
        return -1;
    }
    return 0;
}

static PyObject *
hook_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"kind", "original", "fallback", "ledger", "standing", "end", "fail",
                            "paired", "extra", NULL};
    const char *kind;
    int paired = 0;
    PyObject *original, *fallback, *ledger, *standing, *end, *fail;
    PyObject *one = NULL, *two = NULL, *three = NULL, *extra = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sOOO!O!OO|pO!:Hook", names, &kind, &original,
                                     &fallback, &Ledger_Type, &ledger, &Standing_Type, &standing,
                                     &end, &fail, &paired, &PyTuple_Type, &extra)
        || (extra != NULL && !PyArg_UnpackTuple(extra, "extra", 0, 3, &one, &two, &three))) {
        return NULL;
    }
    vectorcallfunc call = NULL;
    for (size_t place = 0; place < sizeof(kinds) / sizeof(kinds[0]); place++) {
        if (strcmp(kinds[place].name, kind) == 0) {
            call = kinds[place].call;
        }
    }
    if (call == NULL) {
        PyErr_Format(PyExc_ValueError, "no hook is of the kind %s", kind);
        return NULL;
    }
    Hook *self = (Hook *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->call = call;
    self->paired = (char)paired;
    self->original = Py_NewRef(original);
    self->fallback = Py_NewRef(fallback);
    self->ledger = (Ledger *)Py_NewRef(ledger);
    self->standing = (Standing *)Py_NewRef(standing);
    self->end = Py_NewRef(end);
    self->fail = Py_NewRef(fail);
    self->one = Py_XNewRef(one);
    self->two = Py_XNewRef(two);
    self->three = Py_XNewRef(three);
    if (hook_complain(self)) {
        Py_DECREF(self);
        return NULL;
    }
    if (call == call_read && one != Py_None) {
        self->places = PyMem_Calloc(PLACES, sizeof(Place));
    }
    return (PyObject *)self;
}

static int
hook_traverse(PyObject *object, visitproc visit, void *arg)
{
    Hook *self = (Hook *)object;
    Py_VISIT(self->original);
    Py_VISIT(self->fallback);
    Py_VISIT(self->ledger);
    Py_VISIT(self->standing);
    Py_VISIT(self->end);
    Py_VISIT(self->fail);
    Py_VISIT(self->one);
    Py_VISIT(self->two);
    Py_VISIT(self->three);
    Py_VISIT(self->dict);
    return 0;
}

/* Only the dictionary: without the rest a hook that is still in its place could not be called.
 * All other rings lead through objects of Python that can be cleared. */
static int
hook_clear(PyObject *object)
{
    Py_CLEAR(((Hook *)object)->dict);
    return 0;
}

static void
hook_dealloc(PyObject *object)
{
    Hook *self = (Hook *)object;
    PyObject_GC_UnTrack(object);
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs(object);
    }
    for (int place = 0; place < OPTIMIZERS; place++) {
        Py_XDECREF(self->known[place].reference);
    }
    for (int place = 0; self->places != NULL && place < PLACES; place++) {
        Py_XDECREF(self->places[place].code);
        Py_XDECREF(self->places[place].entry);
    }
    PyMem_Free(self->places);
    Py_XDECREF(self->original);
    Py_XDECREF(self->fallback);
    Py_XDECREF(self->ledger);
    Py_XDECREF(self->standing);
    Py_XDECREF(self->end);
    Py_XDECREF(self->fail);
    Py_XDECREF(self->one);
    Py_XDECREF(self->two);
    Py_XDECREF(self->three);
    Py_XDECREF(self->dict);
    Py_TYPE(object)->tp_free(object);
}

/* A method that is taken out of its object and kept is the wrapper in Python, which a compiler of the
   script's own (Dynamo) can look into whenever it comes. Calls do not pass here: see the type's flag. */
static PyObject *
hook_get(PyObject *self, PyObject *object, PyObject *Py_UNUSED(owner))
{
    return object == NULL || object == Py_None ? Py_NewRef(self)
                                               : PyMethod_New(((Hook *)self)->fallback, object);
}

/* What it has not got itself (__code__, __defaults__, ...) is that of the function it stands for. */
static PyObject *
hook_getattro(PyObject *self, PyObject *name)
{
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        found = PyObject_GetAttr(((Hook *)self)->original, name);
    }
    return found;
}

static PyObject *
hook_repr(PyObject *self)
{
    return PyObject_Repr(((Hook *)self)->original);
}

/* Pickled and copied by name, as functions are: elsewhere the name means torch's own again. */
static PyObject *
hook_reduce(PyObject *self, PyObject *Py_UNUSED(nothing))
{
    return PyObject_GetAttrString(self, "__qualname__");
}

/* From now on every call goes to the Python wrapper. */
static PyObject *
hook_step_aside(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    Hook *self = (Hook *)object;
    self->aside = 1;
    if (self->call == call_step_begins || self->call == call_step_ended) {
        publish_step(self);
    }
    Py_RETURN_NONE;
}

static PyMethodDef hook_methods[] = {
    {"__reduce__", hook_reduce, METH_NOARGS, NULL},
    {"step_aside", hook_step_aside, METH_NOARGS, NULL},
    {NULL},
};

static PyMemberDef hook_members[] = {
    {"fallback", T_OBJECT, offsetof(Hook, fallback), READONLY, NULL},
    {NULL},
};

static PyGetSetDef hook_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL},
};

static PyTypeObject Hook_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "hotlap.fast._hooks.Hook",
    .tp_basicsize = sizeof(Hook),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL
                | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_new = hook_new,
    .tp_dealloc = hook_dealloc,
    .tp_traverse = hook_traverse,
    .tp_clear = hook_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Hook, call),
    .tp_descr_get = hook_get,
    .tp_getattro = hook_getattro,
    .tp_setattro = PyObject_GenericSetAttr,
    .tp_repr = hook_repr,
    .tp_methods = hook_methods,
    .tp_members = hook_members,
    .tp_getset = hook_getset,
    .tp_dictoffset = offsetof(Hook, dict),
    .tp_weaklistoffset = offsetof(Hook, weakrefs),
};

/* -- Reader ------------------------------------------------------------------------------------------- */

/* A method of a tensor: torch's own where nobody listens, else one that is told of. */
typedef struct {
    PyObject_HEAD
    PyObject *original;
    Ledger *ledger;
    char aside;
    char always_python;
    PyObject *hook;
    PyObject *fallback;
    PyObject *is_tracing;
} Reader;

static PyObject *
reader_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *original, *fallback, *ledger, *hook, *is_tracing;
    int always_python;
    if (!PyArg_ParseTuple(args, "OOO!O!Op:Reader", &original, &fallback, &Ledger_Type, &ledger,
                          &Hook_Type, &hook, &is_tracing, &always_python)) {
        return NULL;
    }
    if (Py_TYPE(original)->tp_descr_get == NULL || Py_TYPE(fallback)->tp_descr_get == NULL) {
        PyErr_SetString(PyExc_TypeError, "no method of a class");
        return NULL;
    }
    Reader *self = (Reader *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->original = Py_NewRef(original);
        self->fallback = Py_NewRef(fallback);
        self->ledger = (Ledger *)Py_NewRef(ledger);
        self->hook = Py_NewRef(hook);
        self->is_tracing = Py_NewRef(is_tracing);
        self->always_python = (char)always_python;
    }
    return (PyObject *)self;
}

static int
reader_traverse(PyObject *object, visitproc visit, void *arg)
{
    Reader *self = (Reader *)object;
    Py_VISIT(self->original);
    Py_VISIT(self->fallback);
    Py_VISIT(self->ledger);
    Py_VISIT(self->hook);
    Py_VISIT(self->is_tracing);
    return 0;
}

static void
reader_dealloc(PyObject *object)
{
    Reader *self = (Reader *)object;
    PyObject_GC_UnTrack(object);
    Py_XDECREF(self->original);
    Py_XDECREF(self->fallback);
    Py_XDECREF(self->ledger);
    Py_XDECREF(self->hook);
    Py_XDECREF(self->is_tracing);
    Py_TYPE(object)->tp_free(object);
}

static PyObject *
reader_get(PyObject *object, PyObject *tensor, PyObject *owner)
{
    Reader *self = (Reader *)object;
    PyObject *original = self->original;
    if (tensor == NULL || tensor == Py_None) {
        return Py_NewRef(original);
    }
    if (self->aside) {
        return Py_TYPE(self->fallback)->tp_descr_get(self->fallback, tensor, owner);
    }
    if (is_quiet(self->ledger->current)) {
        return Py_TYPE(original)->tp_descr_get(original, tensor, owner);
    }
    if (self->always_python) {
        return Py_TYPE(self->fallback)->tp_descr_get(self->fallback, tensor, owner);
    }
    PyObject *tracing = PyObject_CallNoArgs(self->is_tracing);
    if (tracing != Py_False) {
        Py_XDECREF(tracing);
        PyErr_Clear();
        return Py_TYPE(original)->tp_descr_get(original, tensor, owner);
    }
    Py_DECREF(tracing);
    return PyMethod_New(self->hook, tensor);
}

static PyObject *
reader_step_aside(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    Reader *self = (Reader *)object;
    self->aside = 1;
    ((Hook *)self->hook)->aside = 1;
    Py_RETURN_NONE;
}

static PyMethodDef reader_methods[] = {
    {"step_aside", reader_step_aside, METH_NOARGS, NULL},
    {NULL},
};

static PyMemberDef reader_members[] = {
    {"fallback", T_OBJECT, offsetof(Reader, fallback), READONLY, NULL},
    {NULL},
};

static PyTypeObject Reader_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "hotlap.fast._hooks.Reader",
    .tp_basicsize = sizeof(Reader),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = reader_new,
    .tp_dealloc = reader_dealloc,
    .tp_traverse = reader_traverse,
    .tp_descr_get = reader_get,
    .tp_methods = reader_methods,
    .tp_members = reader_members,
};

/* -- Depth ---------------------------------------------------------------------------------------------- */

/* Shows a thread's own `inside_module` to the Python wrapper. */
typedef struct {
    PyObject_HEAD
} Depth;

static PyObject *
depth_get_inside(PyObject *Py_UNUSED(self), void *Py_UNUSED(nothing))
{
    return PyBool_FromLong(inside_module);
}

static int
depth_set_inside(PyObject *Py_UNUSED(self), PyObject *value, void *Py_UNUSED(nothing))
{
    inside_module = value == Py_True;
    return 0;
}

static PyGetSetDef depth_getset[] = {
    {"inside", depth_get_inside, depth_set_inside, "Of the calling thread.", NULL},
    {NULL},
};

static PyTypeObject Depth_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "hotlap.fast._hooks.Depth",
    .tp_basicsize = sizeof(Depth),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_getset = depth_getset,
};
