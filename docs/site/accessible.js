// Names the search dialog for screen readers, and lets the keyboard scroll wide tables.
document.querySelector(".md-search").setAttribute("aria-label", "Search");
new MutationObserver(() => {
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((each) => each.setAttribute("tabindex", "0"));
}).observe(document.body, { childList: true, subtree: true });
