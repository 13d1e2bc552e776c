// Follow a job: show each step, and open the run when the job is done.
"use strict";
(() => {
  const job = document.getElementById("job");
  const state = document.getElementById("state");
  const steps = document.getElementById("steps");
  const events = new EventSource(job.dataset.events);
  // The browser reconnects after a lost connection, but not after a refused one (too many clients follow jobs).

  events.onerror = () => {
    if (events.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 5000);
  };
  events.addEventListener("job", (event) => {
    const update = JSON.parse(event.data);
    steps.replaceChildren(...update.steps.map((step) => {
      const line = document.createElement("li");
      line.textContent = step.message;
      return line;
    }));
    const over = ["done", "failed", "cancelled"].includes(update.state);
    if (over) events.close();
    if (update.state === "done") location.replace("/runs/" + encodeURIComponent(update.run));
    else if (over) { state.textContent = update.problem; state.classList.add("bad"); }
    else if (update.state === "waiting") state.textContent = job.dataset.waiting;
    else state.textContent = update.steps.length ? update.steps[update.steps.length - 1].message : job.dataset.starting;
  });
})();
