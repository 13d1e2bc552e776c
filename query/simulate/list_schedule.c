/* The hot loops of predictions, called by query.simulate.list_schedule.
 *
 * schedule() takes the steps of query.simulate.replay over plain columns, moments() and integrals() those of
 * query.simulate.device_sharing.Sorted, and most_within() those of query.simulate.network_speed.  All give the same
 * numbers to the last bit; tests/test_listing.py, test_sharing.py and test_links.py compare them.  Python does all of it
 * if this file was not compiled.
 *
 * Columns are contiguous, of int64 or float64.  Of their contents only NaN and infinite times of a schedule are checked,
 * because only these modules make them.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- Min-heaps.  Entries of one heap that compare as equal are identical, so every heap gives the same order. */

typedef struct {
    double at;     /* a time, or how many tasks run */
    int64_t order; /* of two at one time, the one entered first; of two workers, the lower rank */
    int64_t which;
    int kind;
} Entry;

typedef struct {
    Entry *entries;
    size_t count, room;
} Heap;

static bool before(const Entry *one, const Entry *other) {
    return one->at < other->at || (one->at == other->at && one->order < other->order);
}

/* False if memory runs out. */
static bool heap_push(Heap *heap, Entry entry) {
    if (heap->count == heap->room) {
        size_t room = heap->room ? 2 * heap->room : 256;
        Entry *grown = realloc(heap->entries, room * sizeof(Entry));
        if (grown == NULL) return false;
        heap->entries = grown;
        heap->room = room;
    }
    size_t place = heap->count++;
    while (place > 0) {
        size_t parent = (place - 1) / 2;
        if (!before(&entry, &heap->entries[parent])) break;
        heap->entries[place] = heap->entries[parent];
        place = parent;
    }
    heap->entries[place] = entry;
    return true;
}

static Entry heap_pop(Heap *heap) {
    Entry first = heap->entries[0], last = heap->entries[--heap->count];
    size_t place = 0;
    for (;;) {
        size_t child = 2 * place + 1;
        if (child >= heap->count) break;
        if (child + 1 < heap->count && before(&heap->entries[child + 1], &heap->entries[child])) child++;
        if (!before(&heap->entries[child], &last)) break;
        heap->entries[place] = heap->entries[child];
        place = child;
    }
    if (heap->count > 0) heap->entries[place] = last;
    return first;
}

/* ---- Columns by name. */

enum { MOST_COLUMNS = 48 }; /* more than any function below reads */

typedef struct {
    Py_buffer views[MOST_COLUMNS];
    int count;
    bool failed;
} Columns;

/* A pointer to a column's first number; stores the number of items in `length`, unless it is NULL.  After a failure
 * NULL, with Python's error set. */
static void *column(Columns *columns, PyObject *named, const char *name, int flags, int64_t *length) {
    if (columns->failed) return NULL;
    PyObject *found = PyDict_GetItemString(named, name); /* borrowed reference */
    if (found == NULL) PyErr_Format(PyExc_KeyError, "%s", name);
    Py_buffer *view = &columns->views[columns->count];
    if (found == NULL || PyObject_GetBuffer(found, view, PyBUF_C_CONTIGUOUS | flags) < 0) {
        columns->failed = true;
        return NULL;
    }
    columns->count++;
    if (view->itemsize != 8) {
        PyErr_Format(PyExc_TypeError, "%s is not of 8 bytes an item", name);
        columns->failed = true;
        return NULL;
    }
    if (length != NULL) *length = view->len / 8;
    return view->buf;
}

static void release(Columns *columns) {
    while (columns->count > 0) PyBuffer_Release(&columns->views[--columns->count]);
}

/* ---- The schedule. */

enum { ANYWHERE, AT_HOME, ELSEWHERE }; /* query.execution.dag */
enum { SLOT, TASK, NODE, WAKE };

/* X_at[i] is the position of the first row of i in X, which is sorted by what i counts.  `home` are the tasks that wait
 * for their host, in lists of one stage and host each; `list_of` is the list of a task, `homes_at` the first list of a
 * stage.  A stage that `finds` its homes has a list for each such task, and after its start uses as many of them as it
 * has hosts: if a task `followed` another, its host is that of the other task's worker in this schedule. */
typedef struct {
    int64_t tasks, slots, workers, hosts, stages, nodes, lists;
    double start, patience, offers;
    bool is_fair, restarts, on_demand;
    const double *available, *until, *node_from, *node_to, *key, *duration;
    const int64_t *worker_of_slot, *host_of_worker, *first_slot, *workers_of_host, *first_worker;
    const int64_t *stage_of, *place_of, *followed, *finds;
    const int64_t *anywhere, *anywhere_at, *elsewhere, *elsewhere_at;
    const int64_t *homes_at, *left_of;
    int64_t *wanted_of, *host_of, *home, *home_at, *home_host, *list_of; /* changed where a stage `finds` its homes */
    const int64_t *node_stage, *node_of_stage, *missing_of, *successors, *successors_at, *limits;
    double *launch, *finish, *node_start, *node_end;
    int64_t *slot_of;
} Plan;

enum { STEPS_BETWEEN_SIGNALS = 1 << 14 };

typedef struct {
    const Plan *plan;
    double now, last_until;
    int64_t entered, turn, steps;
    Heap events;
    /* Free slots: a stack for each worker, and heaps of (running, worker), of workers that ran a task and of new ones,
     * whose entries may be outdated; the number of idle workers of each kind, with a free slot and no task, and in
     * `lots` the accumulated share of new ones. */
    Heap least_loaded[2];
    /* Without workers that may be lost, the same in `shelves` instead: for each kind and number of running tasks, the
     * workers with a free slot, a bit each; `shelf_of` is the shelf of a worker, -1 for none. */
    bool may_lose;
    int64_t shelves, words, *shelf_of, *shelved;
    uint64_t *shelf;
    int64_t *stack, *depth, *running, *is_new, idle[2];
    double lots;
    /* Hosts with free slots: the number of slots of each, the list of these hosts, and each host's position in it. */
    int64_t *free_on, *free_hosts, *free_place, free_count;
    /* Stages: the next task of each queue, the number of waiting tasks, of those at home, and of running tasks. */
    int64_t *left, *waiting, *at_home, *lists_left, *next_anywhere, *next_elsewhere, *active, *blocked, *next_home;
    double *since, *wakes;
    int64_t *ready, ready_count, *to_start, to_start_count, *missing;
} State;

/* Counts a step of a loop.  False if the user interrupted it, with Python's error set: the loop runs without Python's lock,
 * so a signal such as Ctrl-C would wait for its end. */
static bool goes_on(State *state) {
    if (++state->steps % STEPS_BETWEEN_SIGNALS != 0) return true;
    PyGILState_STATE locked = PyGILState_Ensure();
    bool is_fine = PyErr_CheckSignals() == 0;
    PyGILState_Release(locked);
    return is_fine;
}

static bool enter(State *state, double at, int kind, int64_t which) {
    return heap_push(&state->events, (Entry){at, ++state->entered, which, kind});
}

static int64_t top_slot(const State *state, int64_t worker) {
    return state->stack[state->plan->first_slot[worker] + state->depth[worker] - 1];
}

/* Whether a worker has a free slot and is not lost. */
static bool can_run(const State *state, int64_t worker) {
    return worker >= 0 && worker < state->plan->workers && state->depth[worker] > 0 &&
           state->now < state->plan->until[top_slot(state, worker)];
}

/* Adds `by` to the number of idle workers if a worker has a free slot and runs no task. */
static void tally(State *state, int64_t worker, int64_t by) {
    if (state->depth[worker] > 0 && state->running[worker] == 0) state->idle[state->is_new[worker]] += by;
}

static int64_t take_slot(State *state, int64_t worker) {
    int64_t slot = top_slot(state, worker), host = state->plan->host_of_worker[worker];
    tally(state, worker, -1);
    state->depth[worker]--;
    tally(state, worker, 1);
    if (--state->free_on[host] == 0) {
        int64_t moved = state->free_hosts[--state->free_count];
        state->free_hosts[state->free_place[host]] = moved;
        state->free_place[moved] = state->free_place[host];
    }
    return slot;
}

/* Puts a worker on the shelf of its kind and its running tasks, or on none without a free slot. */
static void shelve(State *state, int64_t worker) {
    int64_t from = state->shelf_of[worker], to = -1;
    uint64_t bit = UINT64_C(1) << (worker % 64);
    if (state->depth[worker] > 0) to = state->is_new[worker] * state->shelves + state->running[worker];
    if (from == to) return;
    if (from >= 0) {
        state->shelf[from * state->words + worker / 64] &= ~bit;
        state->shelved[from]--;
    }
    if (to >= 0) {
        state->shelf[to * state->words + worker / 64] |= bit;
        state->shelved[to]++;
    }
    state->shelf_of[worker] = to;
}

/* The first worker on the first shelf of its kind, -1 if there is none. */
static int64_t first_shelved(const State *state, int64_t is_new) {
    for (int64_t shelf = is_new * state->shelves; shelf < (is_new + 1) * state->shelves; shelf++) {
        if (state->shelved[shelf] == 0) continue;
        for (int64_t word = 0; word < state->words; word++) {
            uint64_t bits = state->shelf[shelf * state->words + word];
            int64_t worker = 64 * word;
            if (bits == 0) continue;
            while ((bits & 1) == 0) bits >>= 1, worker++;
            return worker;
        }
    }
    return -1;
}

static bool offer(State *state, int64_t worker) {
    if (!state->may_lose) {
        shelve(state, worker);
        return true;
    }
    return heap_push(&state->least_loaded[state->is_new[worker]],
                     (Entry){(double)state->running[worker], worker, worker, 0});
}

static bool give_slot(State *state, int64_t slot) {
    int64_t worker = state->plan->worker_of_slot[slot], host = state->plan->host_of_worker[worker];
    tally(state, worker, -1);
    state->stack[state->plan->first_slot[worker] + state->depth[worker]++] = slot;
    tally(state, worker, 1);
    if (state->free_on[host]++ == 0) {
        state->free_hosts[state->free_count] = host;
        state->free_place[host] = state->free_count++;
    }
    return offer(state, worker);
}

/* The least loaded worker with a free slot, of new workers or of those that ran a task; -1 if there is none.  Drops the
 * slots of lost workers. */
static int64_t first_of(State *state, int64_t is_new) {
    if (!state->may_lose) return first_shelved(state, is_new);
    Heap *heap = &state->least_loaded[is_new];
    while (heap->count > 0) {
        const Entry *first = &heap->entries[0];
        int64_t worker = first->which;
        while (state->depth[worker] > 0 && state->now >= state->plan->until[top_slot(state, worker)])
            take_slot(state, worker);
        bool is_true = first->at == (double)state->running[worker] && state->is_new[worker] == is_new;
        if (state->depth[worker] > 0 && is_true) return worker;
        heap_pop(heap);
    }
    return -1;
}

static bool any_alive(State *state) {
    if (!state->may_lose) return state->free_count > 0;
    return first_of(state, 1) >= 0 || first_of(state, 0) >= 0;
}

/* The worker for the next task; only after any_alive(). */
static int64_t least_loaded(State *state) {
    int64_t new = first_of(state, 1), other = first_of(state, 0);
    if (new < 0 || other < 0) return new < 0 ? other : new;
    if (state->running[other] > 0) return new;
    if (state->plan->on_demand) return other;
    state->lots += (double)state->idle[1] / (double)(state->idle[1] + state->idle[0]);
    if (state->lots < 1.0) return other;
    state->lots -= 1.0;
    return new;
}

/* The stage that launches the next task, -1 if none can. */
static int64_t next_stage(const State *state) {
    const Plan *plan = state->plan;
    int64_t stage = -1;
    for (int64_t place = 0; place < state->ready_count; place++) {
        int64_t each = state->ready[place];
        if (state->blocked[each] == state->turn) continue;
        if (plan->limits[each] >= 0 && state->active[each] >= plan->limits[each]) continue;
        if (stage < 0)
            stage = each;
        else if (plan->is_fair && state->active[each] != state->active[stage])
            stage = state->active[each] < state->active[stage] ? each : stage;
        else if (plan->key[each] < plan->key[stage])
            stage = each;
    }
    return stage;
}

/* The first task of a stage whose host has a free slot, -1 if there is none. */
static int64_t first_at_home(const State *state, int64_t stage) {
    const Plan *plan = state->plan;
    int64_t best = -1;
    if (state->lists_left[stage] <= state->free_count) {
        for (int64_t list = plan->homes_at[stage]; list < plan->homes_at[stage + 1]; list++) {
            int64_t host = plan->home_host[list];
            if (state->next_home[list] < plan->home_at[list + 1] && host >= 0 && state->free_on[host] > 0) {
                int64_t head = plan->home[state->next_home[list]];
                if (best < 0 || head < best) best = head;
            }
        }
        return best;
    }
    for (int64_t number = 0; number < state->free_count; number++) {
        int64_t host = state->free_hosts[number];
        int64_t low = plan->homes_at[stage], high = plan->homes_at[stage + 1];
        int64_t guess = low < high ? low + host - plan->home_host[low] : high; /* often there is a list for each host */
        if (guess >= low && guess < high && plan->home_host[guess] == host) low = high = guess;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (plan->home_host[middle] < host)
                low = middle + 1;
            else
                high = middle;
        }
        bool found = low < plan->homes_at[stage + 1] && plan->home_host[low] == host;
        if (found && state->next_home[low] < plan->home_at[low + 1]) {
            int64_t head = plan->home[state->next_home[low]];
            if (best < 0 || head < best) best = head;
        }
    }
    return best;
}

/* The worker for a task on its host: the wanted one if possible, -1 if there is none. */
static int64_t near(const State *state, int64_t task) {
    const Plan *plan = state->plan;
    if (can_run(state, plan->wanted_of[task])) return plan->wanted_of[task];
    int64_t host = plan->host_of[task];
    for (int64_t place = plan->first_worker[host]; place < plan->first_worker[host + 1]; place++)
        if (can_run(state, plan->workers_of_host[place])) return plan->workers_of_host[place];
    return -1;
}

/* The first task of a stage that no longer waits for its host, -1 if there is none. */
static int64_t impatient(const State *state, int64_t stage) {
    const Plan *plan = state->plan;
    int64_t task = -1;
    if (state->next_elsewhere[stage] < plan->elsewhere_at[stage + 1])
        task = plan->elsewhere[state->next_elsewhere[stage]];
    for (int64_t list = plan->homes_at[stage]; list < plan->homes_at[stage + 1]; list++)
        if (state->next_home[list] < plan->home_at[list + 1]) {
            int64_t head = plan->home[state->next_home[list]];
            if (task < 0 || head < task) task = head;
        }
    return task;
}

/* The least loaded worker that is not lost before a time, -1 if there is none. */
static int64_t staying(const State *state, double ends) {
    int64_t found = -1;
    for (int64_t worker = 0; worker < state->plan->workers; worker++) {
        bool stays = state->depth[worker] > 0 && state->plan->until[top_slot(state, worker)] >= ends;
        if (stays && (found < 0 || state->running[worker] < state->running[found])) found = worker;
    }
    return found;
}

/* The task of a stage to launch now and the worker that it wants; -1 if it has to wait, with a WAKE event entered.
 * False if memory runs out. */
static bool choose(State *state, int64_t stage, int64_t *task, int64_t *wanted) {
    const Plan *plan = state->plan;
    *task = *wanted = -1;
    if (state->next_anywhere[stage] < plan->anywhere_at[stage + 1]) {
        *task = plan->anywhere[state->next_anywhere[stage]];
        *wanted = plan->wanted_of[*task];
    }
    if (state->at_home[stage] > 0) {
        int64_t head = first_at_home(state, stage);
        if (head >= 0 && (*task < 0 || head < *task)) {
            int64_t worker = near(state, head);
            if (worker >= 0) {
                *task = head;
                *wanted = worker;
            }
        }
    }
    if (*task >= 0) return true;
    double patient_until = state->since[stage] + plan->patience;
    if (state->now >= patient_until) {
        *task = impatient(state, stage);
        if (*task >= 0) *wanted = plan->wanted_of[*task];
    } else if (state->wakes[stage] != patient_until) {
        state->wakes[stage] = patient_until;
        return enter(state, patient_until + plan->offers / 2.0, WAKE, stage);
    }
    return true;
}

/* Removes a task from its queue. */
static void dequeue(State *state, int64_t stage, int64_t task) {
    const Plan *plan = state->plan;
    if (plan->place_of[task] == ANYWHERE)
        state->next_anywhere[stage]++;
    else if (plan->place_of[task] == ELSEWHERE)
        state->next_elsewhere[stage]++;
    else {
        int64_t list = plan->list_of[task];
        state->at_home[stage]--;
        if (++state->next_home[list] == plan->home_at[list + 1]) state->lists_left[stage]--;
    }
    if (--state->waiting[stage] > 0) return;
    int64_t place = 0;
    while (state->ready[place] != stage) place++;
    state->ready_count--;
    memmove(&state->ready[place], &state->ready[place + 1], (size_t)(state->ready_count - place) * sizeof(int64_t));
}

/* Launches all tasks that can start now.  False if memory runs out, or interrupted. */
static bool launch_all(State *state) {
    const Plan *plan = state->plan;
    state->turn++;
    for (;;) {
        if (!goes_on(state)) return false;
        int64_t task, wanted, stage = next_stage(state);
        if (stage < 0) return true;
        if (!any_alive(state)) {
            for (int64_t place = 0; place < state->ready_count && !plan->restarts; place++) /* no slot is left idle */
                state->since[state->ready[place]] = state->now;
            return true;
        }
        if (!choose(state, stage, &task, &wanted)) return false;
        if (task >= 0 && !can_run(state, wanted)) {
            /* The least loaded one, but not one that is lost before the task would end, if others stay. */
            wanted = least_loaded(state);
            double ends = state->now + plan->duration[task];
            if (plan->until[top_slot(state, wanted)] < ends && ends <= state->last_until) wanted = staying(state, ends);
        }
        if (task < 0 || wanted < 0) { /* all workers with free slots are lost too early, and others will stay */
            state->blocked[stage] = state->turn;
            continue;
        }
        int64_t slot = take_slot(state, wanted);
        tally(state, wanted, -1);
        state->running[wanted]++;
        state->is_new[wanted] = 0;
        if ((state->depth[wanted] > 0 || !state->may_lose) && !offer(state, wanted)) return false;
        dequeue(state, stage, task);
        state->active[stage]++;
        if (plan->restarts && plan->place_of[task] == AT_HOME) state->since[stage] = state->now;
        plan->slot_of[task] = slot;
        plan->launch[task] = state->now;
        plan->finish[task] = state->now + plan->duration[task];
        if (!enter(state, plan->finish[task], TASK, task)) return false;
    }
}

typedef struct {
    int64_t host, task;
} Home;

static int by_host(const void *one, const void *other) {
    const Home *a = one, *b = other;
    if (a->host != b->host) return a->host < b->host ? -1 : 1;
    return a->task < b->task ? -1 : a->task > b->task;
}

/* Makes the lists of a starting stage, from the workers of the tasks that its own follow.  False if memory runs out. */
static bool find_homes(State *state, int64_t stage) {
    const Plan *plan = state->plan;
    int64_t list = plan->homes_at[stage] - 1, end_list = plan->homes_at[stage + 1];
    int64_t first = plan->home_at[list + 1], count = plan->home_at[end_list] - first;
    Home *homes = malloc((size_t)(count + 1) * sizeof(Home));
    if (homes == NULL) return false;
    for (int64_t place = 0; place < count; place++) {
        int64_t task = plan->home[first + place], other = plan->followed[task];
        if (other >= 0 && plan->finish[other] > 0) {
            plan->wanted_of[task] = plan->worker_of_slot[plan->slot_of[other]];
            plan->host_of[task] = plan->host_of_worker[plan->wanted_of[task]];
        }
        homes[place] = (Home){plan->host_of[task], task};
    }
    qsort(homes, (size_t)count, sizeof(Home), by_host);
    state->lists_left[stage] = -list - 1;
    for (int64_t place = 0; place < count; place++) {
        if (place == 0 || homes[place].host != homes[place - 1].host) {
            plan->home_host[++list] = homes[place].host;
            plan->home_at[list] = state->next_home[list] = first + place;
        }
        plan->home[first + place] = homes[place].task;
        plan->list_of[homes[place].task] = list;
    }
    state->lists_left[stage] += list + 1;
    while (++list < end_list) { /* not in use */
        plan->home_host[list] = INT64_MAX;
        plan->home_at[list] = state->next_home[list] = first + count;
    }
    free(homes);
    return true;
}

/* Starts the nodes without open dependencies.  False if memory runs out. */
static bool start_nodes(State *state) {
    const Plan *plan = state->plan;
    for (int64_t place = 0; place < state->to_start_count; place++) {
        int64_t node = state->to_start[place], stage = plan->node_stage[node];
        plan->node_start[node] = state->now;
        if (stage >= 0 && state->left[stage] > 0) {
            if (plan->finds[stage] && !find_homes(state, stage)) return false;
            state->ready[state->ready_count++] = stage;
            state->since[stage] = state->now;
            continue;
        }
        double ends = stage < 0 ? state->now + plan->node_to[node] - plan->node_from[node] : state->now;
        if (!enter(state, ends, NODE, node)) return false;
    }
    state->to_start_count = 0;
    return true;
}

/* Applies an event.  False if memory runs out. */
static bool happen(State *state, Entry event) {
    const Plan *plan = state->plan;
    if (event.kind == NODE) {
        plan->node_end[event.which] = state->now;
        for (int64_t at = plan->successors_at[event.which]; at < plan->successors_at[event.which + 1]; at++) {
            int64_t successor = plan->successors[at];
            if (--state->missing[successor] == 0) state->to_start[state->to_start_count++] = successor;
        }
        return true;
    }
    if (event.kind == WAKE) return true;
    if (event.kind == SLOT) return give_slot(state, event.which);
    int64_t slot = plan->slot_of[event.which], stage = plan->stage_of[event.which];
    state->active[stage]--;
    state->left[stage]--;
    state->running[plan->worker_of_slot[slot]]--;
    tally(state, plan->worker_of_slot[slot], 1);
    if (!give_slot(state, slot)) return false;
    return state->left[stage] > 0 || enter(state, state->now, NODE, plan->node_of_stage[stage]);
}

/* An event-driven simulation: a clock, a heap of events, and queues.  False if memory runs out, or interrupted. */
static bool run(State *state) {
    const Plan *plan = state->plan;
    for (int64_t worker = 0; worker < plan->workers; worker++) state->is_new[worker] = 1, state->shelf_of[worker] = -1;
    for (int64_t slot = 0; slot < plan->slots; slot++) {
        state->last_until = fmax(state->last_until, plan->until[slot]);
        if (!enter(state, fmax(plan->start, plan->available[slot]), SLOT, slot)) return false;
    }
    for (int64_t stage = 0; stage < plan->stages; stage++) {
        state->left[stage] = state->waiting[stage] = plan->left_of[stage];
        state->next_anywhere[stage] = plan->anywhere_at[stage];
        state->next_elsewhere[stage] = plan->elsewhere_at[stage];
        state->lists_left[stage] = plan->homes_at[stage + 1] - plan->homes_at[stage];
        state->at_home[stage] = plan->home_at[plan->homes_at[stage + 1]] - plan->home_at[plan->homes_at[stage]];
        state->since[stage] = state->wakes[stage] = -1.0;
    }
    memcpy(state->next_home, plan->home_at, (size_t)plan->lists * sizeof(int64_t));
    memcpy(state->missing, plan->missing_of, (size_t)plan->nodes * sizeof(int64_t));
    for (int64_t node = 0; node < plan->nodes; node++)
        if (state->missing[node] == 0) state->to_start[state->to_start_count++] = node;
    state->now = plan->start;
    if (!start_nodes(state)) return false;
    while (state->events.count > 0) {
        state->now = state->events.entries[0].at;
        while (state->events.count > 0 && state->events.entries[0].at <= state->now)
            if (!goes_on(state) || !happen(state, heap_pop(&state->events)) || !start_nodes(state)) return false;
        if (!launch_all(state)) return false;
    }
    return true;
}

/* Allocates one block of zeros for the columns of a state; NULL if memory runs out. */
static int64_t *share_out(State *state) {
    const Plan *plan = state->plan;
    struct {
        int64_t **where;
        int64_t count;
    } parts[] = {
        {&state->stack, plan->slots},          {&state->depth, plan->workers},
        {&state->running, plan->workers},      {&state->is_new, plan->workers},
        {&state->free_on, plan->hosts},
        {&state->free_hosts, plan->hosts},     {&state->free_place, plan->hosts},
        {&state->shelf_of, plan->workers},     {&state->shelved, 2 * state->shelves},
        {(int64_t **)&state->shelf, 2 * state->shelves * state->words},
        {&state->left, plan->stages},          {&state->waiting, plan->stages},
        {&state->at_home, plan->stages},       {&state->lists_left, plan->stages},
        {&state->next_anywhere, plan->stages}, {&state->next_elsewhere, plan->stages},
        {&state->active, plan->stages},        {&state->blocked, plan->stages},
        {&state->next_home, plan->lists},      {&state->ready, plan->stages},
        {&state->to_start, plan->nodes},       {&state->missing, plan->nodes},
    };
    int64_t whole = 1;
    for (size_t each = 0; each < sizeof parts / sizeof *parts; each++) whole += parts[each].count;
    int64_t *block = calloc((size_t)whole, sizeof(int64_t)), *next = block;
    for (size_t each = 0; block != NULL && each < sizeof parts / sizeof *parts; each++) {
        *parts[each].where = next;
        next += parts[each].count;
    }
    return block;
}

/* The first column with a number that the loop would not end with: a NaN, or an infinite duration.  NULL if there is
 * none. */
static const char *not_finite(const Plan *plan) {
    const struct {
        const char *name;
        const double *numbers;
        int64_t count;
        bool may_be_infinite;
    } columns[] = {
        {"duration", plan->duration, plan->tasks, false}, {"node_from", plan->node_from, plan->nodes, false},
        {"node_to", plan->node_to, plan->nodes, false},   {"available", plan->available, plan->slots, false},
        {"until", plan->until, plan->slots, true},        {"key", plan->key, plan->stages, true},
        {"start_ms", &plan->start, 1, false},             {"patience_ms", &plan->patience, 1, true},
        {"offers_ms", &plan->offers, 1, true},
    };
    for (size_t each = 0; each < sizeof columns / sizeof *columns; each++)
        for (int64_t place = 0; place < columns[each].count; place++) {
            double number = columns[each].numbers[place];
            if (isnan(number) || (isinf(number) && !columns[each].may_be_infinite)) return columns[each].name;
        }
    return NULL;
}

static bool schedule(const Plan *plan) {
    State state = {.plan = plan};
    int64_t most = 0; /* slots of a worker */
    for (int64_t slot = 0; slot < plan->slots; slot++) state.may_lose |= plan->until[slot] < INFINITY;
    for (int64_t worker = 0; worker < plan->workers; worker++) {
        int64_t own = plan->first_slot[worker + 1] - plan->first_slot[worker];
        most = own > most ? own : most;
    }
    if (!state.may_lose) {
        state.shelves = most + 1;
        state.words = (plan->workers + 63) / 64;
    }
    int64_t *block = share_out(&state);
    double *times = calloc((size_t)(2 * plan->stages + 1), sizeof(double));
    bool done = block != NULL && times != NULL;
    if (done) {
        state.since = times;
        state.wakes = times + plan->stages;
        done = run(&state);
    }
    free(block);
    free(times);
    free(state.events.entries);
    free(state.least_loaded[0].entries);
    free(state.least_loaded[1].entries);
    return done;
}

#define READS(name) plan.name = column(&columns, named, #name, 0, NULL)
#define FILLS(name) plan.name = column(&columns, named, #name, PyBUF_WRITABLE, NULL)
#define COUNTED(name, count) plan.name = column(&columns, named, #name, 0, &plan.count)

static PyObject *py_schedule(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *named;
    Plan plan = {0};
    int is_fair, restarts, on_demand;
    if (!PyArg_ParseTuple(arguments, "O!dddppp", &PyDict_Type, &named, &plan.start, &plan.patience, &plan.offers,
                          &is_fair, &restarts, &on_demand))
        return NULL;
    plan.is_fair = is_fair;
    plan.restarts = restarts;
    plan.on_demand = on_demand;
    Columns columns = {.count = 0};
    COUNTED(duration, tasks);
    COUNTED(available, slots);
    COUNTED(host_of_worker, workers);
    COUNTED(first_worker, hosts); /* one more than there are hosts */
    COUNTED(left_of, stages);
    COUNTED(node_stage, nodes);
    plan.home_host = column(&columns, named, "home_host", PyBUF_WRITABLE, &plan.lists);
    READS(until), READS(node_from), READS(node_to), READS(key);
    READS(worker_of_slot), READS(first_slot), READS(workers_of_host);
    READS(stage_of), READS(place_of), READS(followed), READS(finds);
    READS(anywhere), READS(anywhere_at), READS(elsewhere), READS(elsewhere_at);
    READS(homes_at);
    FILLS(wanted_of), FILLS(host_of), FILLS(home), FILLS(home_at), FILLS(list_of);
    READS(node_of_stage), READS(missing_of), READS(successors), READS(successors_at), READS(limits);
    FILLS(launch), FILLS(finish), FILLS(slot_of), FILLS(node_start), FILLS(node_end);
    bool done = !columns.failed;
    const char *wrong = done ? not_finite(&plan) : NULL;
    if (wrong != NULL) {
        PyErr_Format(PyExc_ValueError, "%s has a number that is not finite", wrong);
        done = false;
    } else if (done) {
        Py_BEGIN_ALLOW_THREADS
        done = schedule(&plan);
        Py_END_ALLOW_THREADS
        if (!done && !PyErr_Occurred()) PyErr_NoMemory(); /* goes_on() may have set another error */
    }
    release(&columns);
    if (!done) return NULL;
    Py_RETURN_NONE;
}

/* ---- Fills `total` with the integral of the level over each interval: Sorted.means() in one pass. */

static void integrals(const int64_t *order, int64_t moments, const double *gap_ms, const double *rate, int64_t count,
                      double *total) {
    double level = 0.0, integral = 0.0;
    for (int64_t place = 0; place < moments; place++) {
        int64_t moment = order[place];
        if (moment < count) {
            total[moment] = integral;
            level += rate[moment];
        } else {
            total[moment - count] = integral - total[moment - count];
            level -= rate[moment - count];
        }
        if (place + 1 < moments) integral += level * gap_ms[place];
    }
}

static PyObject *py_integrals(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *named;
    if (!PyArg_ParseTuple(arguments, "O!", &PyDict_Type, &named)) return NULL;
    Columns columns = {.count = 0};
    int64_t moments, count;
    const int64_t *order = column(&columns, named, "order", 0, &moments);
    const double *gap_ms = column(&columns, named, "gap_ms", 0, NULL);
    const double *rate = column(&columns, named, "rate", 0, &count);
    double *total = column(&columns, named, "total", PyBUF_WRITABLE, NULL);
    bool done = !columns.failed;
    if (done) {
        Py_BEGIN_ALLOW_THREADS
        integrals(order, moments, gap_ms, rate, count, total);
        Py_END_ALLOW_THREADS
    }
    release(&columns);
    if (!done) return NULL;
    Py_RETURN_NONE;
}

/* ---- Fills `order` with the moments of intervals by group and time, and `gap_ms` with the time to the next one:
 * Sorted.__init__() without a sort of each group in Python. */

typedef struct {
    double at;
    int64_t which;
} Moment;

enum { MOVES = 16 }; /* of a moment on average, up to which moments are nearly in order */

/* Sorts by time, stable; `spare` is as long.  Most lists are nearly in order. */
static void sort_moments(Moment *moments, Moment *spare, int64_t count) {
    int64_t moves = MOVES * count;
    for (int64_t place = 1; place < count; place++) {
        Moment each = moments[place];
        int64_t to = place;
        for (; to > 0 && moments[to - 1].at > each.at; to--) moments[to] = moments[to - 1];
        moments[to] = each;
        moves -= place - to;
        if (moves >= 0) continue;
        int64_t half = count / 2; /* merge two sorted halves instead */
        sort_moments(moments, spare, half);
        sort_moments(moments + half, spare, count - half);
        memcpy(spare, moments, (size_t)half * sizeof(Moment));
        for (int64_t left = 0, right = half, next = 0; left < half; next++)
            moments[next] = right < count && moments[right].at < spare[left].at ? moments[right++] : spare[left++];
        return;
    }
}

static bool moments_of(const int64_t *group, int64_t count, int64_t groups, const double *start, const double *end,
                       int64_t *order, double *gap_ms) {
    int64_t *at = calloc((size_t)groups + 1, sizeof(int64_t)), *own = malloc((size_t)count * sizeof(int64_t) + 1);
    int64_t most = 0;
    for (int64_t each = 0; at != NULL && each < count; each++) at[group[each] + 1]++;
    for (int64_t each = 0; at != NULL && each < groups; each++) {
        most = at[each + 1] > most ? at[each + 1] : most;
        at[each + 1] += at[each];
    }
    Moment *moments = malloc((size_t)(3 * most + 1) * sizeof(Moment));
    bool done = at != NULL && own != NULL && moments != NULL;
    for (int64_t each = 0; done && each < count; each++) own[at[group[each]]++] = each;
    Moment *ends = moments + most, *spare = moments + 2 * most;
    for (int64_t which = 0, first = 0, next = 0; done && which < groups; which++) {
        int64_t members = at[which] - first;
        for (int64_t place = 0; place < members; place++) {
            int64_t each = own[first + place];
            moments[place] = (Moment){start[each], each};
            ends[place] = (Moment){end[each], each + count};
        }
        sort_moments(moments, spare, members);
        sort_moments(ends, spare, members);
        double last = 0.0;
        for (int64_t opened = 0, closed = 0; opened + closed < 2 * members; next++) {
            bool opens = closed == members || (opened < members && moments[opened].at <= ends[closed].at);
            Moment moment = opens ? moments[opened++] : ends[closed++];
            order[next] = moment.which;
            if (next > 0) gap_ms[next - 1] = opened + closed == 1 ? 0.0 : moment.at - last; /* none between groups */
            last = moment.at;
        }
        first = at[which];
    }
    free(at);
    free(own);
    free(moments);
    return done;
}

static PyObject *py_moments(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *named;
    Py_ssize_t groups;
    if (!PyArg_ParseTuple(arguments, "O!n", &PyDict_Type, &named, &groups)) return NULL;
    Columns columns = {.count = 0};
    int64_t count;
    const int64_t *group = column(&columns, named, "group", 0, &count);
    const double *start = column(&columns, named, "start", 0, NULL), *end = column(&columns, named, "end", 0, NULL);
    int64_t *order = column(&columns, named, "order", PyBUF_WRITABLE, NULL);
    double *gap_ms = column(&columns, named, "gap_ms", PyBUF_WRITABLE, NULL);
    bool done = !columns.failed;
    if (done) {
        Py_BEGIN_ALLOW_THREADS
        done = moments_of(group, count, groups, start, end, order, gap_ms);
        Py_END_ALLOW_THREADS
        if (!done) PyErr_NoMemory();
    }
    release(&columns);
    if (!done) return NULL;
    Py_RETURN_NONE;
}

/* ---- The highest rate within windows of a fixed length, of intervals in the order of their starts:
 * query.simulate.network_speed.most_within() in one pass for each length. */

typedef struct {
    double window, begin, finish, amount;
} Window; /* of one group, with the intervals inside it so far */

static double rate_of(const Window *window) { return window->amount / (window->finish - window->begin); }

static double highest_rate(const int64_t *group, const double *since, const double *until, const double *start,
                           const double *end, const double *amount, int64_t count, Window *windows, int64_t groups,
                           double each, double shift) {
    double best = 0.0, window = -1.0, later = -INFINITY, sure = -INFINITY;
    for (int64_t which = 0; which < groups; which++) windows[which].window = -1.0;
    for (int64_t place = 0; place < count; place++) {
        if (since[place] >= later) { /* it may start in a later window */
            window = floor((since[place] + shift) / each);
            double ends = (window + 1.0) * each - shift, unsure = 1e-9 * (fabs(ends) + each);
            later = sure = ends - unsure;
            sure += 2.0 * unsure;
        }
        /* Division decides only near the end of a window, where it may round. */
        if (until[place] >= sure || (until[place] >= later && floor((until[place] + shift) / each) != window)) continue;
        Window *own = &windows[group[place]];
        if (own->window != window) {
            if (own->window >= 0.0) best = fmax(best, rate_of(own));
            *own = (Window){window, start[place], end[place], amount[place]};
            continue;
        }
        if (end[place] > own->finish) own->finish = end[place];
        own->amount += amount[place];
    }
    for (int64_t which = 0; which < groups; which++)
        if (windows[which].window >= 0.0) best = fmax(best, rate_of(&windows[which]));
    return best;
}

static PyObject *py_most_within(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *named;
    Py_ssize_t groups;
    double each, best = 0.0;
    if (!PyArg_ParseTuple(arguments, "O!nd", &PyDict_Type, &named, &groups, &each)) return NULL;
    Columns columns = {.count = 0};
    int64_t count, turns;
    const int64_t *group = column(&columns, named, "group", 0, &count);
    const double *since = column(&columns, named, "since", 0, NULL), *until = column(&columns, named, "until", 0, NULL);
    const double *start = column(&columns, named, "start", 0, NULL), *end = column(&columns, named, "end", 0, NULL);
    const double *amount = column(&columns, named, "amount", 0, NULL);
    const double *shifts = column(&columns, named, "shifts", 0, &turns);
    bool done = !columns.failed;
    if (done) {
        Py_BEGIN_ALLOW_THREADS
        Window *windows = malloc((size_t)groups * sizeof(Window) + 1);
        done = windows != NULL;
        for (int64_t turn = 0; done && turn < turns; turn++)
            best = fmax(best, highest_rate(group, since, until, start, end, amount, count, windows, groups, each,
                                           shifts[turn]));
        free(windows);
        Py_END_ALLOW_THREADS
        if (!done) PyErr_NoMemory();
    }
    release(&columns);
    return done ? PyFloat_FromDouble(best) : NULL;
}

static PyMethodDef functions[] = {
    {"schedule", py_schedule, METH_VARARGS,
     "schedule(columns, start_ms, patience_ms, offers_ms, is_fair, restarts, on_demand): fills launch, finish, slot_of, "
     "node_start and node_end."},
    {"integrals", py_integrals, METH_VARARGS, "integrals(columns): fills total from order, gap_ms and rate."},
    {"moments", py_moments, METH_VARARGS, "moments(columns, groups): fills order and gap_ms from group, start and end."},
    {"most_within", py_most_within, METH_VARARGS,
     "most_within(columns, groups, length): the highest rate within windows of this length and the given shifts."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef described = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "crystalperf.query.simulate._list_schedule",
    .m_doc = "Loops of crystalperf.query.simulate as machine code.",
    .m_size = 0,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__list_schedule(void) {
    return PyModuleDef_Init(&described);
}
