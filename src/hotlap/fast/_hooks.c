/* The hooks of what every training step does, compiled: see docs/decisions/0004-compiled-hooks.md.
 *
 * One translation unit on purpose: what runs between two parts of a step lies on few pages. Each
 * piece has a counterpart in Python, which says what it has to do: ledger.h, standing.h and stacks.h
 * in fast/reference.py, wrappers.h in sites/ and probe/.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h> /* of frames nothing else is known in Python 3.10 */
#endif
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>
#include <time.h>

#ifdef Py_GIL_DISABLED
#error "The hooks rely on the global interpreter lock; hotlap works without them."
#endif

#include "ledger.h"
#include "standing.h"
#include "wrappers.h"
#include "types.h"
#include "stacks.h"

static PyObject *
set_clock(PyObject *Py_UNUSED(module), PyObject *clock)
{
    Py_XSETREF(clock_of_tests, clock == Py_None ? NULL : Py_NewRef(clock));
    Py_RETURN_NONE;
}

static PyObject *
read_clock(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing))
{
    return PyLong_FromLongLong(now_ns());
}

static PyMethodDef methods[] = {
    {"read_clock", read_clock, METH_NOARGS, "Return the hooks' time, which has to be Python's."},
    {"set_clock", set_clock, METH_O, "Let a callable stand in for the clocks; None: none."},
    {"stacks", stacks, METH_VARARGS, "Return the stacks of all threads: see fast/reference.py."},
    {NULL},
};

static int
execute(PyObject *module)
{
    /* Its state is of the process, not of an interpreter. */
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError, "the compiled hooks are of the main interpreter only");
        return -1;
    }
    PyTypeObject *types[] = {&Tally_Type, &Ledger_Type, &Ticks_Type, &Standing_Type, &Feed_Type,
                             &Sample_Type, &Hook_Type, &Reader_Type, &Depth_Type};
    for (size_t place = 0; place < sizeof(types) / sizeof(types[0]); place++) {
        if (PyModule_AddType(module, types[place])) {
            return -1;
        }
    }
    if (training_key == NULL) {
        training_key = PyUnicode_InternFromString("training");
    }
    if (loader_key == NULL) {
        loader_key = PyUnicode_InternFromString("_hotlap_loader");
    }
    PyObject *accounts = Py_BuildValue("{sisisisisisi}", "data_wait", DATA_WAIT, "forward", FORWARD,
                                       "backward", BACKWARD, "optimizer", OPTIMIZER, "other", OTHER,
                                       "compile", COMPILE);
    PyObject *rules = Py_BuildValue("{sisisi}", "backward", BY_BACKWARD, "loader", BY_LOADER,
                                    "optimizer", BY_OPTIMIZER);
    int failed = training_key == NULL || loader_key == NULL
                 || PyModule_AddObjectRef(module, "ACCOUNTS", accounts)
                 || PyModule_AddObjectRef(module, "RULES", rules)
                 || PyModule_AddIntConstant(module, "WIDTH", ACCOUNTS)
                 || PyModule_AddIntConstant(module, "INTERFACE", 3);
    Py_XDECREF(accounts);
    Py_XDECREF(rules);
    return failed ? -1 : 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "hotlap.fast._hooks",
    .m_doc = "The hooks of what every training step does, compiled.",
    .m_size = 0,
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC
PyInit__hooks(void)
{
    return PyModuleDef_Init(&definition);
}
