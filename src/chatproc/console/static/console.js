// Watches a work that a page shows, and loads the page anew when it is over. Without it the page does so itself.
"use strict";

const shown = document.querySelector("[data-work]");

async function watch() {
  const answer = await fetch(`/works/${shown.dataset.work}`).catch(() => null);
  if (!answer?.ok) return; // the console has ended
  const work = await answer.json();
  if (work.over) {
    location.reload();
    return;
  }
  const bar = shown.querySelector("progress");
  if (work.total) {
    bar.max = work.total;
    bar.value = work.done;
  }
  for (const place of shown.querySelectorAll("[data-of]")) {
    const value = work[place.dataset.of];
    place.textContent = value === null ? "?" : value.toLocaleString();
  }
  setTimeout(watch, 500);
}

if (shown) setTimeout(watch, 300);
