"""Compiled kernels, the numerical functions that run in every frame, and the records that they take.

A kernel is a function of arrays and numbers that numba compiles to machine code. Arrays that belong together are a
record: a named tuple that is one argument. Kernels hand records to each other. Python hands over the buffer of a
record, one array with all of its values, which costs 0.15 us; the ten arrays of ``Dynamics`` cost 0.85 us::

    @record
    class State(NamedTuple):
        mean: Vector
        covariance: Matrix

    @kernel  # only kernels call it
    def add_noise(state: State, variance: float) -> None: ...

    @entry_point  # Python calls it: compiled for these types before the first sample
    def predict(state: State, dt: float) -> None: ...

    buffer, state = buffered(State(np.zeros(3), np.eye(3)))
    predict(buffer, 0.1)  # changes the arrays of the state

:func:`prepare` compiles the entry points of all modules imported so far, or loads them from the cache.

====================  ===================================================================
:mod:`.compiler`      the decorators, :func:`prepare`, which compiles, and the machine code
:mod:`.records`       records and their buffers
:mod:`.buffer_views`  how compiled code finds the arrays of a record in its buffer
====================  ===================================================================
"""
