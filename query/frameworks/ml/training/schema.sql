-- Tables of a recorded training, in addition to those of every run: PyTorch, TensorFlow, JAX, MXNet.

CREATE TABLE training_operations (            -- one row per instance of an operator; its other columns are in tasks
    task_id BIGINT NOT NULL,                  -- of tasks
    operator VARCHAR NOT NULL,                -- its kind, in the framework's term: aten::conv2d, MatMul, a kernel's name
    name VARCHAR,                             -- the instance: a node of TensorFlow's graph
    kind VARCHAR,                             -- op, python, kernel, copy, collective, transfer, input or runtime
    bytes BIGINT,                             -- that crossed a link; NULL if not recorded
    module VARCHAR,                           -- the module of the model that called it
    call_site VARCHAR,                        -- where in the user's program
    flops DOUBLE,                             -- floating-point operations of a kernel; NULL if not known
    moved_bytes DOUBLE,                       -- through the device's memory, each tensor once a pass; NULL if not known
    unit VARCHAR,                             -- of a product: 16-bit, tf32, fp32, fp64 or fp8
    bound VARCHAR,                            -- what bounds most of a kernel's time: compute, memory, latency or copy
    known_by VARCHAR                          -- how its work is known: shapes, grid or name
);

CREATE TABLE training_collectives (           -- one row per collective of all processes, and process
    name VARCHAR NOT NULL,                    -- all_reduce, broadcast, in the library's term
    worker_id VARCHAR NOT NULL,               -- the process
    step VARCHAR,                             -- the step that it was in
    bytes BIGINT,                             -- of the process' own part; NULL if not recorded
    arrived_ms DOUBLE NOT NULL,               -- the process arrived
    began_ms DOUBLE NOT NULL,                 -- the last process arrived, so bytes could move
    ended_ms DOUBLE NOT NULL                  -- the collective ended on the process
);

CREATE TABLE training_devices (               -- one row per device; its other columns are in workers
    worker_id VARCHAR NOT NULL,               -- of workers
    accelerator BOOLEAN NOT NULL,             -- whether it is an accelerator of a process, not a process
    model VARCHAR                             -- as the trace names it: NVIDIA H100
);

CREATE TABLE training_memory (                -- what held an accelerator's memory at its highest peak, one row per part
    worker_id VARCHAR NOT NULL,               -- of workers
    part VARCHAR NOT NULL,                    -- before (what the trace begins with), forward, backward, gradients, optimizer
    bytes BIGINT NOT NULL                     -- in blocks of the program
);
