/* The stacks of other threads, as plain objects. */

/* Return (code, last instruction, name of the module) of a frame, NULL with an error. */
static PyObject *
entry_of(PyFrameObject *frame)
{
    PyObject *entry = NULL, *module = NULL;
    PyObject *code = (PyObject *)PyFrame_GetCode(frame);
    PyObject *last = PyObject_GetAttrString((PyObject *)frame, "f_lasti");
    PyObject *globals = PyObject_GetAttrString((PyObject *)frame, "f_globals");
    if (last != NULL && globals != NULL) {
        if (PyDict_Check(globals)) {
            module = PyDict_GetItemString(globals, "__name__");
        }
        if (module == NULL || !PyUnicode_CheckExact(module)) {
            module = Py_None;
        }
        entry = PyTuple_Pack(3, code, last, module);
    }
    Py_DECREF(code);
    Py_XDECREF(last);
    Py_XDECREF(globals);
    return entry;
}

/* Return the entries from `frame` outwards, None where it is no frame, NULL with an error. */
static PyObject *
entries_from(PyObject *object, Py_ssize_t depth)
{
    if (!PyFrame_Check(object)) {
        return Py_NewRef(Py_None); /* seen once while Dynamo ran a frame of its own making */
    }
    PyObject *entries = PyList_New(0);
    PyFrameObject *frame = (PyFrameObject *)Py_NewRef(object);
    while (entries != NULL && frame != NULL && PyList_GET_SIZE(entries) < depth) {
        PyObject *entry = entry_of(frame);
        if (entry == NULL || PyList_Append(entries, entry)) {
            Py_CLEAR(entries);
        }
        Py_XDECREF(entry);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return entries;
}

static PyObject *
entries_by_thread(PyObject *whole, Py_ssize_t depth)
{
    PyObject *current_frames = PySys_GetObject("_current_frames");
    if (current_frames == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "lost sys._current_frames");
        return NULL;
    }
    PyObject *frames = PyObject_CallNoArgs(current_frames);
    PyObject *found = frames == NULL ? NULL : PyDict_New();
    PyObject *ident, *frame;
    Py_ssize_t at = 0;
    while (found != NULL && PyDict_Next(frames, &at, &ident, &frame)) {
        int chosen = PySequence_Contains(whole, ident);
        PyObject *entries = chosen < 0 ? NULL : entries_from(frame, chosen ? depth : 1);
        if (entries == NULL || PyDict_SetItem(found, ident, entries)) {
            Py_CLEAR(found);
        }
        Py_XDECREF(entries);
    }
    Py_XDECREF(frames);
    return found;
}

/* All in one go: the interpreter is not given away, no frame is held when this returns, and no
 * collection, whose callbacks would give it away, begins at what is allocated here. Python 3.11
 * does not survive a frame that is left, and so made to own itself, while another thread walks over
 * the frames outside of it. */
static PyObject *
stacks(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *whole;
    Py_ssize_t depth;
    if (!PyArg_ParseTuple(args, "O!n:stacks", &PyTuple_Type, &whole, &depth)) {
        return NULL;
    }
    int collected = PyGC_Disable();
    PyObject *found = entries_by_thread(whole, depth);
    if (collected) {
        PyGC_Enable();
    }
    return found;
}
