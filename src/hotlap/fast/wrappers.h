/* What stands in torch's places: does the plain case itself, leaves the rest to the Python wrapper.
 *
 * Nothing of ours may raise into the training here: what can fail either leaves the call to the
 * Python wrapper before anything has changed, or is told to the channel, as that wrapper does.
 */

/* The indices of values.phase.RULES that the hooks need; the Python side checks them. */
enum { BY_BACKWARD = 1, BY_LOADER = 2, BY_OPTIMIZER = 3 };

#define OPTIMIZERS 4
#define PLACES 64

/* An instruction that reads tensors, and its entry in the table; entry NULL: it has none. */
typedef struct {
    PyObject *code;
    int lasti;
    unsigned long generation;
    Tally *entry;
} Place;

typedef struct {
    PyObject *reference;
    long ordinal;
} Known;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *original;
    Ledger *ledger;
    Standing *standing;
    char aside;
    char paired;
    PyObject *fallback;
    PyObject *end;
    PyObject *fail;
    /* By kind: what the wrapper needs beside that. */
    PyObject *one, *two, *three;
    Known known[OPTIMIZERS];
    Place *places;
    PyObject *dict;
    PyObject *weakrefs;
} Hook;

static PyTypeObject Hook_Type;

/* The name of a module's attribute that says in which mode it is. */
static PyObject *training_key;

/* Whether this thread is inside a call of a module. */
static __thread int inside_module;

#define LEAVE_IT_TO_PYTHON(self, args, nargsf, names) \
    PyObject_Vectorcall(((Hook *)(self))->fallback, args, nargsf, names)
#define CALL_ORIGINAL(self, args, nargsf, names) \
    PyObject_Vectorcall(((Hook *)(self))->original, args, nargsf, names)

/* -- errors of ours ------------------------------------------------------------------------------- */

/* A call of ours has raised while the user's result or exception waits: tell the channel, go on. */
static PyObject *
report(Hook *self, PyObject *result, PyObject *theirs)
{
    if (PyErr_ExceptionMatches(PyExc_Exception)) {
        PyObject *ours = take_error();
        PyObject *told = PyObject_CallOneArg(self->fail, ours);
        Py_DECREF(ours);
        if (told != NULL) {
            Py_DECREF(told);
            if (theirs != NULL) {
                give_error(theirs);
            }
            return result;
        }
    }
    /* A signal handler's exception, or Ctrl-C: it is the script's. */
    Py_XDECREF(result);
    if (theirs != NULL) {
        PyObject *raised = take_error();
        PyException_SetContext(raised, theirs);
        give_error(raised);
    }
    return NULL;
}

/* Leave the end of the call to the subscriber in Python, as its wrapper would have called it. */
static PyObject *
end_in_python(Hook *self, int token, PyObject *subject, PyObject *result)
{
    PyObject *theirs = result == NULL ? take_error() : NULL;
    PyObject *given = self->paired ? Py_BuildValue("(ii)", token, 0) : PyLong_FromLong(token);
    PyObject *ended = NULL;
    if (given != NULL) {
        ended = PyObject_CallFunctionObjArgs(self->end, given, subject, NULL);
        Py_DECREF(given);
    }
    if (ended == NULL) {
        return report(self, result, theirs);
    }
    Py_DECREF(ended);
    if (theirs != NULL) {
        give_error(theirs);
    }
    return result;
}

/* -- models ---------------------------------------------------------------------------------------- */

/* Whether a module is in training mode, read past its own lookup: none of its code may run here. */
static int
is_in_training(PyObject *module)
{
    PyObject *attributes = PyObject_GenericGetDict(module, NULL);
    PyObject *mode = NULL;
    if (attributes != NULL && PyDict_Check(attributes)) {
        mode = PyDict_GetItemWithError(attributes, training_key);
    }
    int trains = mode == Py_True;
    Py_XDECREF(attributes);
    return trains;
}

/* Whether this is a model that trains: seen in a backward pass, in training mode, with gradients. */
static int
trains_now(Hook *self, PyObject *module)
{
    PyObject *key = PyLong_FromVoidPtr(module);
    PyObject *roots = self->standing->roots;
    int known = key != NULL && roots != NULL && PyDict_CheckExact(roots)
                && PyDict_Contains(roots, key) == 1;
    Py_XDECREF(key);
    PyObject *grad = known && is_in_training(module) ? PyObject_CallNoArgs(self->one) : NULL;
    int trains = grad == Py_True;
    Py_XDECREF(grad);
    PyErr_Clear(); /* no Python code has run, so nothing of the script's is among what is dropped */
    return trains;
}

static PyObject *
call_module(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Hook *self = (Hook *)object;
    if (self->aside) {
        return LEAVE_IT_TO_PYTHON(object, args, nargsf, names);
    }
    if (inside_module) {
        return CALL_ORIGINAL(object, args, nargsf, names);
    }
    Ledger *ledger = self->ledger;
    Standing *standing = self->standing;
    if (ledger->thread != PyThread_get_thread_ident() || PyVectorcall_NARGS(nargsf) < 1
        || standing->ticks >= standing->due) {
        return LEAVE_IT_TO_PYTHON(object, args, nargsf, names);
    }
    int current = ledger->current, token = 0;
    if (current != BACKWARD && current != DATA_WAIT && current != COMPILE) {
        if (!trains_now(self, args[0]) || !standing_plain(standing) || !standing->ticks
            || !standing->counts->at[0] || (token = ledger_enter(ledger, FORWARD)) < 0) {
            return LEAVE_IT_TO_PYTHON(object, args, nargsf, names);
        }
        standing->totals->at[1]++;
        standing->counts->at[1]++;
    }
    PyObject *module = args[0];
    Py_INCREF(self);
    inside_module = 1;
    PyObject *result = CALL_ORIGINAL(object, args, nargsf, names);
    inside_module = 0;
    if (token && ledger->depth == token && standing->stretch == Py_None) {
        ledger_leave(ledger, token);
    } else if (token) {
        result = end_in_python(self, token, module, result);
    }
    Py_DECREF(self);
    return result;
}

static inline int
is_empty_list(PyObject *list)
{
    return list != NULL && PyList_CheckExact(list) && !PyList_GET_SIZE(list);
}

static PyObject *
call_backward(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Hook *self = (Hook *)object;
    Ledger *ledger = self->ledger;
    Standing *standing = self->standing;
    if (self->aside || standing->ticks >= standing->due) {
        return LEAVE_IT_TO_PYTHON(object, args, nargsf, names);
    }
    if (ledger->thread != PyThread_get_thread_ident() || ledger->current == BACKWARD
        || ledger->current == COMPILE) {
        return CALL_ORIGINAL(object, args, nargsf, names);
    }
    int token;
    if (!standing_plain(standing) || !is_empty_list(standing->fetched)
        || !is_empty_list(standing->pending) || (token = ledger_enter(ledger, BACKWARD)) < 0) {
        return LEAVE_IT_TO_PYTHON(object, args, nargsf, names);
    }
    standing->totals->at[2]++;
    standing->counts->at[2]++;
    Py_INCREF(self);
    PyObject *result = CALL_ORIGINAL(object, args, nargsf, names);
    if (ledger->depth == token && standing->rank > BY_BACKWARD && !standing->stepped_inside) {
        ledger_leave(ledger, token);
    } else {
        result = end_in_python(self, token, Py_None, result);
    }
    Py_DECREF(self);
    return result;
}

/* -- optimizers -------------------------------------------------------------------------------------- */

static PyObject *
call_zero_grad(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Hook *self = (Hook *)object;
    Ledger *ledger = self->ledger;
    if (self->aside) {
        return LEAVE_IT_TO_PYTHON(object, args, nargsf, names);
    }
    if (ledger->current != OTHER || ledger->thread != PyThread_get_thread_ident()) {
        return CALL_ORIGINAL(object, args, nargsf, names);
    }
    int token = ledger_enter(ledger, OPTIMIZER);
    if (token < 0) {
        return LEAVE_IT_TO_PYTHON(object, args, nargsf, names);
    }
    Py_INCREF(self);
    PyObject *result = CALL_ORIGINAL(object, args, nargsf, names);
    ledger_leave(ledger, token);
    Py_DECREF(self);
    return result;
}

/* Hand a step that was begun here over to Python: its watcher and its wrapper keep tokens by id. */
static void
publish_step(Hook *self)
{
    Ledger *ledger = self->ledger;
    if (ledger->stepping == NULL) {
        return;
    }
    PyObject *key = PyLong_FromVoidPtr(ledger->stepping);
    PyObject *token = PyLong_FromLong(ledger->stepping_token);
    PyObject *given = NULL;
    if (token != NULL) {
        given = self->paired ? Py_BuildValue("(Oi)", token, 0) : Py_NewRef(token);
    }
    if (key != NULL && given != NULL) {
        PyDict_SetItem(self->one, key, token);
        PyDict_SetItem(self->two, key, given);
    }
    Py_XDECREF(key);
    Py_XDECREF(token);
    Py_XDECREF(given);
    PyErr_Clear();
    ledger->stepping = NULL;
}

static PyObject *
call_step_begins(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Hook *self = (Hook *)object;
    Ledger *ledger = self->ledger;
    Standing *standing = self->standing;
    int token;
    if (self->aside || PyVectorcall_NARGS(nargsf) < 1 || ledger->depth || ledger->stepping != NULL
        || ledger->thread != PyThread_get_thread_ident() || standing->ticks >= standing->due
        || PyDict_GET_SIZE(self->one) || standing->begun == NULL) {
        publish_step(self);
        return LEAVE_IT_TO_PYTHON(object, args, nargsf, names);
    }
    if (standing->begun != Py_None) {
        /* The device's clock wants to know whose turn it was. */
        PyObject *turn = Py_BuildValue("(LN)", (long long)standing->ticks,
                                       PyLong_FromVoidPtr(args[0]));
        PyObject *noted = turn == NULL ? NULL : PyObject_CallOneArg(standing->begun, turn);
        Py_XDECREF(turn);
        if (noted == NULL) {
            return report(self, Py_NewRef(Py_None), NULL);
        }
        Py_DECREF(noted);
    }
    token = ledger_enter(ledger, OPTIMIZER);
    if (token < 0) {
        return LEAVE_IT_TO_PYTHON(object, args, nargsf, names);
    }
    ledger->stepping = args[0];
    ledger->stepping_token = token;
    Py_RETURN_NONE;
}

static int
is_alive(PyObject *reference, PyObject *object)
{
    if (reference == NULL) {
        return 0;
    }
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *found;
    int alive = PyWeakref_GetRef(reference, &found) == 1 && found == object;
    Py_XDECREF(found);
    return alive;
#else
    return PyWeakref_GET_OBJECT(reference) == object;
#endif
}

/* Return an optimizer's ordinal; -1 with an exception set when Python could not tell it. */
static long
ordinal_of(Hook *self, PyObject *optimizer)
{
    for (int place = 0; place < OPTIMIZERS; place++) {
        if (is_alive(self->known[place].reference, optimizer)) {
            return self->known[place].ordinal;
        }
    }
    PyObject *told = PyObject_CallOneArg(self->three, optimizer);
    long ordinal = told == NULL ? -1 : PyLong_AsLong(told);
    Py_XDECREF(told);
    if (ordinal < 0) {
        return -1;
    }
    PyObject *reference = PyWeakref_NewRef(optimizer, NULL);
    if (reference == NULL) {
        return -1;
    }
    Known *known = &self->known[ordinal % OPTIMIZERS];
    Py_XSETREF(known->reference, reference);
    known->ordinal = ordinal;
    return ordinal;
}

static PyObject *
call_step_ended(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Hook *self = (Hook *)object;
    Ledger *ledger = self->ledger;
    Standing *standing = self->standing;
    if (self->aside || ledger->stepping == NULL || PyVectorcall_NARGS(nargsf) < 1
        || ledger->stepping != args[0] || ledger->depth != 1 || ledger->stepping_token != 1
        || ledger->thread != PyThread_get_thread_ident() || standing->stretch != Py_None
        || !standing->ticks || standing->rank > BY_OPTIMIZER || standing->kept == NULL
        || Py_TYPE(standing->kept) != &Ticks_Type) {
        publish_step(self);
        return LEAVE_IT_TO_PYTHON(object, args, nargsf, names);
    }
    Ticks *kept = (Ticks *)standing->kept;
    long ordinal = kept->kept < kept->room ? ordinal_of(self, args[0]) : -2;
    if (ordinal < 0) {
        PyObject *raised = PyErr_Occurred() ? take_error() : NULL;
        publish_step(self);
        if (raised != NULL) {
            give_error(raised);
            return report(self, Py_NewRef(Py_None), NULL);
        }
        return LEAVE_IT_TO_PYTHON(object, args, nargsf, names);
    }
    ledger->stepping = NULL;
    int64_t cpu = thread_ns();
    ledger_leave(ledger, 1);
    standing->rank = BY_OPTIMIZER;
    memcpy(standing->base->at, ledger->accounts->at, sizeof(int64_t) * ACCOUNTS);
    Tick *tick = &kept->at[kept->kept++];
    tick->now = ledger->mark;
    tick->rank = BY_OPTIMIZER;
    tick->optimizer = ordinal;
    tick->cpu = cpu;
    tick->epoch_first = standing->epoch_first;
    memcpy(tick->accounts, ledger->accounts->at, sizeof(int64_t) * ACCOUNTS);
    memcpy(tick->counts, standing->counts->at, sizeof(int64_t) * COUNTS);
    memset(standing->counts->at, 0, sizeof(int64_t) * COUNTS);
    standing->epoch_first = 0;
    standing->ticks++;
    if (kept->kept >= TOGETHER || ledger->mark >= kept->due_ns) {
        PyObject *now = PyLong_FromLongLong(ledger->mark);
        PyObject *done = now == NULL ? NULL : PyObject_CallOneArg(self->end, now);
        Py_XDECREF(now);
        if (done == NULL) {
            return report(self, Py_NewRef(Py_None), NULL);
        }
        Py_DECREF(done);
    }
    Py_RETURN_NONE;
}

/* -- loaders ------------------------------------------------------------------------------------------- */

/* The key under which an iterator carries what is known of its loader. */
static PyObject *loader_key;

static PyObject *
call_next(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Hook *self = (Hook *)object;
    Ledger *ledger = self->ledger;
    Standing *standing = self->standing;
    if (self->aside || PyVectorcall_NARGS(nargsf) != 1 || names != NULL
        || ledger->thread != PyThread_get_thread_ident() || ledger->current == DATA_WAIT
        || ledger->current == BACKWARD || !standing_plain(standing)
        || standing->rank <= BY_LOADER) {
        return LEAVE_IT_TO_PYTHON(object, args, nargsf, names);
    }
    PyObject *iterator = args[0], *attributes = PyObject_GenericGetDict(iterator, NULL);
    PyObject *feed = NULL;
    if (attributes != NULL && PyDict_Check(attributes)) {
        feed = PyDict_GetItemWithError(attributes, loader_key);
    }
    Py_XINCREF(feed);
    Py_XDECREF(attributes);
    PyErr_Clear();
    int token = -1;
    if (feed != NULL && PyObject_TypeCheck(feed, &Feed_Type) && ((Feed *)feed)->trains
        && !((Feed *)feed)->fresh) {
        token = ledger_enter(ledger, DATA_WAIT);
    }
    if (token < 0) {
        Py_XDECREF(feed);
        return LEAVE_IT_TO_PYTHON(object, args, nargsf, names);
    }
    ledger->waited_before = ledger->accounts->at[DATA_WAIT];
    Py_XSETREF(ledger->loading, Py_NewRef(feed));
    Py_INCREF(self);
    PyObject *result = CALL_ORIGINAL(object, args, nargsf, names);
    if (result == NULL && PyErr_ExceptionMatches(PyExc_StopIteration)) {
        PyObject *theirs = take_error();
        PyObject *told = PyObject_CallOneArg(self->one, iterator);
        if (told == NULL && PyErr_ExceptionMatches(PyExc_Exception)) {
            PyObject *ours = take_error();
            told = PyObject_CallOneArg(self->two, ours);
            Py_DECREF(ours);
        }
        if (told == NULL) {
            PyObject *raised = take_error();
            PyException_SetContext(raised, theirs);
            theirs = raised;
        }
        Py_XDECREF(told);
        give_error(theirs);
        result = end_in_python(self, token, iterator, NULL);
    } else if (ledger->depth == token && standing->stretch == Py_None
               && ledger->waited_before >= 0 && ((Feed *)feed)->trains
               && !((Feed *)feed)->fresh) {
        ledger_leave(ledger, token);
        Py_XSETREF(ledger->loading, Py_NewRef(Py_None));
        standing->counts->at[0]++;
    } else {
        result = end_in_python(self, token, iterator, result);
    }
    Py_DECREF(feed);
    Py_DECREF(self);
    return result;
}

/* Here `one` is what measures batches. A batch that is left out of the sample passes. */
static PyObject *
call_fetch(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Hook *self = (Hook *)object;
    Sample *sample = (Sample *)self->one;
    if (self->aside || PyVectorcall_NARGS(nargsf) < 1) {
        return LEAVE_IT_TO_PYTHON(object, args, nargsf, names);
    }
    if (sample->open != Py_None || sample->skipping) {
        return CALL_ORIGINAL(object, args, nargsf, names);
    }
    if (!sample->to_skip || sample->fetcher != (unsigned long long)(uintptr_t)args[0]) {
        return LEAVE_IT_TO_PYTHON(object, args, nargsf, names);
    }
    sample->to_skip--;
    sample->skipping = 1;
    Py_INCREF(self);
    PyObject *result = CALL_ORIGINAL(object, args, nargsf, names);
    sample->skipping = 0;
    sample->skipped++;
    Py_DECREF(self);
    return result;
}

static PyObject *
call_collate(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Hook *self = (Hook *)object;
    if (!self->aside && ((Sample *)self->one)->open == Py_None) {
        return CALL_ORIGINAL(object, args, nargsf, names);
    }
    return LEAVE_IT_TO_PYTHON(object, args, nargsf, names);
}

/* -- reads of tensors ------------------------------------------------------------------------------------ */

/* Where torch itself reads tensors by the hundred: probe.touches leaves these alone. */
static inline int
is_quiet(int account)
{
    return account == BACKWARD || account == OPTIMIZER || account == DATA_WAIT
           || account == COMPILE;
}

#if PY_VERSION_HEX >= 0x030B0000
/* Call the Python wrapper, and ask it for the entry that it has made for this instruction. */
static PyObject *
call_read_and_learn(Hook *self, Place *place, PyObject *const *args, size_t nargsf,
                    PyObject *names)
{
    PyObject *code = place->code;
    int lasti = place->lasti;
    unsigned long generation = place->generation;
    Py_INCREF(code);
    PyObject *result = LEAVE_IT_TO_PYTHON(self, args, nargsf, names);
    PyObject *theirs = result == NULL ? take_error() : NULL;
    PyObject *entry = PyObject_CallFunction(self->one, "OiO", code, lasti, self->two);
    if (entry != NULL && place->code == code && place->lasti == lasti
        && place->generation == generation && place->entry == NULL
        && Py_TYPE(entry) == &Tally_Type && Py_SIZE(entry) >= 2) {
        place->entry = (Tally *)Py_NewRef(entry);
    }
    Py_XDECREF(entry);
    Py_DECREF(code);
    if (PyErr_Occurred()) {
        return report(self, result, theirs);
    }
    if (theirs != NULL) {
        give_error(theirs);
    }
    return result;
}
#endif

static PyObject *
call_read(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Hook *self = (Hook *)object;
    Ledger *ledger = self->ledger;
    if (self->aside) {
        return LEAVE_IT_TO_PYTHON(object, args, nargsf, names);
    }
    if (ledger->reading || is_quiet(ledger->current)
        || ledger->thread != PyThread_get_thread_ident()) {
        return CALL_ORIGINAL(object, args, nargsf, names);
    }
#if PY_VERSION_HEX >= 0x030B0000
    PyFrameObject *frame = PyEval_GetFrame();
    if (self->places == NULL || frame == NULL) {
        return LEAVE_IT_TO_PYTHON(object, args, nargsf, names);
    }
    PyObject *code = (PyObject *)PyFrame_GetCode(frame);
    int lasti = PyFrame_GetLasti(frame);
    Place *place = &self->places[(((uintptr_t)code >> 4) ^ (unsigned)lasti / 2) % PLACES];
    if (place->code != code || place->lasti != lasti || place->generation != ledger->generation) {
        /* Kept with its code, so that the address stays its own. */
        PyObject *before = place->code;
        Tally *entry = place->entry;
        place->code = code;
        place->lasti = lasti;
        place->generation = ledger->generation;
        place->entry = NULL;
        Py_XDECREF(before);
        Py_XDECREF(entry);
        return call_read_and_learn(self, place, args, nargsf, names);
    }
    Py_DECREF(code);
    if (place->entry == NULL) {
        return LEAVE_IT_TO_PYTHON(object, args, nargsf, names);
    }
    Tally *entry = (Tally *)Py_NewRef(place->entry);
    ledger->reading = 1;
    Py_INCREF(self);
    int64_t begun = now_ns();
    PyObject *result = CALL_ORIGINAL(object, args, nargsf, names);
    entry->at[0]++;
    entry->at[1] += now_ns() - begun;
    ledger->reading = 0;
    Py_DECREF(entry);
    Py_DECREF(self);
    return result;
#else
    return LEAVE_IT_TO_PYTHON(object, args, nargsf, names);
#endif
}
