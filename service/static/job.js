// Follows a job: shows each step as it comes, and goes on to the run when it is there.
"use strict";
(() => {
  const job = document.getElementById("job");
  const state = document.getElementById("state");
  const steps = document.getElementById("steps");
  const events = new EventSource(job.dataset.events);
  // A connection that broke is made again by the browser; one that was refused (too many follow jobs) is not.
  events.onerror = () => {
    if (events.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 5000);
  };
  events.addEventListener("job", (event) => {
    const told = JSON.parse(event.data);
    steps.replaceChildren(...told.steps.map((step) => {
      const line = document.createElement("li");
      line.textContent = step.said;
      return line;
    }));
    const over = ["done", "failed", "cancelled"].includes(told.state);
    if (over) events.close();
    if (told.state === "done") location.replace("/runs/" + encodeURIComponent(told.run));
    else if (over) { state.textContent = told.problem; state.classList.add("bad"); }
    else if (told.state === "waiting") state.textContent = job.dataset.waiting;
    else state.textContent = told.steps.length ? told.steps[told.steps.length - 1].said : job.dataset.starting;
  });
})();
